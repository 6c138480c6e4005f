#!lua flags=allow-oom
-- Lease ready jobs: urgent ones, then those of normal priority, then the rest; of each
-- what came back before what was never delivered.
--
-- KEYS[1...] the shelf's, then the pattern's: keys.rs
-- ARGV[1] worker
-- ARGV[2] nonce of this call
-- ARGV[3] lease (ms)
-- ARGV[4] how many at most
--
-- Returns {now (ms), 1 if paused else 0, ms until the next delayed job is due or -1,
-- how many were buried because somebody else had deleted them, token, entry, ...}, the
-- entries without this delivery and those that came back uncounted.
local keys = bind_keys()
local worker, nonce, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local wanted = tonumber(ARGV[4])
local HEAD = 4

local time = redis.call('TIME')
local now_us = string.format('%.0f', time[1] * 1000000 + time[2])
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

-- Most queues most of the time have none of these: one question for all four.
local is_plain = redis.call('EXISTS', keys.paused, keys.later, keys.streams.u,
  keys.streams.p) == 0
local due_in_ms = is_plain and -1 or next_in_ms(keys.later, now_ms)
if not is_plain and redis.call('EXISTS', keys.paused) == 1 then
  return {now_ms, 1, due_in_ms, 0}
end

-- Keys of another type fail here, before the first write.
redis.call('ZCARD', keys.leased)
redis.call('HLEN', keys.unique)
redis.call('LLEN', keys.wake)
check_ready(keys)

local answer, ends, buried, is_more = {now_ms, 0, due_in_ms, 0}, {}, 0, false
local name = worker .. '/' .. now_us .. '/' .. nonce .. '-'

local function count()
  return #ends / 2
end

local function lease(level, sid, fields, deliveries)
  local entry, job = entry_of(sid, fields)
  -- While it is leased it cannot expire, so its key is not free then either.
  if (job.expires_at or 0) > 0 then hold_until(keys.unique, job, 0) end
  local kind = (job.flags % 4 ~= 0 or job.attempt > 0) and 't' or 'p'
  local counts = kind .. job.attempt + deliveries .. '.' .. deliveries
  local token = name .. count() + 1 .. '/' .. counts .. '/' .. level .. ':' .. sid
  ends[#ends + 1] = now_ms + (job.lease_ms or lease_ms)
  ends[#ends + 1] = token .. '/' .. job.id
  answer[#answer + 1] = token
  answer[#answer + 1] = entry
end

-- Entries that came back, or that a doorbell has heard. Those that somebody else has
-- deleted are not among what the server answers.
local function take_back(level, back)
  local stream, sids, deliveries = keys.streams[level], {}, {}
  for i, pending in ipairs(back) do
    sids[i], deliveries[pending[1]] = pending[1], pending[4]
  end
  for _, found in ipairs(redis.call('XCLAIM', stream, GROUP, LEASED, 0, unpack(sids))) do
    lease(level, found[1], found[2], deliveries[found[1]])
    deliveries[found[1]] = nil
  end
  for sid in pairs(deliveries) do
    bury_deleted(keys, stream, sid, sid)
    buried = buried + 1
  end
end

local function take(level)
  local stream, room = keys.streams[level], wanted - count()
  if room == 0 then
    is_more = true
    return
  end
  local back = in_group('XPENDING', stream, GROUP, '-', '+', room, READY)
  if #back > 0 then take_back(level, back) end
  if #back == room then
    is_more = true
    return
  end
  local unread = redis.call('XREADGROUP', 'GROUP', GROUP, LEASED, 'COUNT', room - #back,
    'STREAMS', stream, '>')
  for _, found in ipairs(unread and unread[1][2] or {}) do
    lease(level, found[1], found[2], 1)
  end
  -- Nobody hears what is added to the others.
  if level ~= 'n' and count() == wanted then is_more = true end
end

-- A stream of another priority is there while something is in it.
local function remove_empty(stream)
  if redis.call('XLEN', stream) == 0 and redis.call('XPENDING', stream, GROUP)[1] == 0 then
    redis.call('UNLINK', stream)
  end
end

for _, level in ipairs(LEVELS) do
  local stream = keys.streams[level]
  if level == 'n' then
    take(level)
  elseif not is_plain and redis.call('EXISTS', stream) == 1 then
    take(level)
    if count() < wanted then remove_empty(stream) end
  end
end
if #ends > 0 then redis.call('ZADD', keys.leased, unpack(ends)) end
-- One push wakes one worker, which wakes the next. New entries wake by themselves.
if is_more or buried > 0 then ring(keys) end
answer[HEAD] = buried
return answer
