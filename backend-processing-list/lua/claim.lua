#!lua flags=allow-oom
-- Lease ready jobs: stamp them and put them into a processing list.
--
-- KEYS[1] ready    LIST    Q itself, oldest on the right
-- KEYS[2] handed   LIST    elements moved here by a waiting claim, so older
-- KEYS[3] list     LIST    where leased jobs go: the worker's own, or the shared one
-- KEYS[4] leased   ZSET    lease -> end (ms), of those with an end of their own
-- KEYS[5] workers  ZSET    session -> end of its heartbeat (ms)
-- KEYS[6] retired  ZSET    session that ended -> until when its list is watched (ms)
-- KEYS[7] later    ZSET    id -> due (ms)
-- KEYS[8] unique   HASH    unique key -> holder
-- KEYS[9] paused   STRING  there while claims are paused
-- ARGV[1] session: what names of leases begin with
-- ARGV[2] 'worker' if the lease is the worker's, 'job' if it is each job's
-- ARGV[3] nonce of this call
-- ARGV[4] lease (ms)
-- ARGV[5] how many at most
-- ARGV[6] 'now', 'waiting' if the worker waits when nothing is ready, or 'moved' to
--         take only what a blocking move has brought
-- ARGV[7] header of an entry for a bare payload, up to the id's length
-- ARGV[8] how many bytes at most, or one job
--
-- Returns {now (us), 1 if paused else 0, ms until the next delayed job is due or -1,
-- element, ...}, the elements as they are leased now.
local ready, handed, list, leased, workers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local retired, later, unique, paused = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local session, scope, nonce, lease_ms = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local wanted, asked, bare_header = tonumber(ARGV[5]), ARGV[6], ARGV[7]
local most_bytes = tonumber(ARGV[8])

local time = redis.call('TIME')
local now_us = string.format('%.0f', time[1] * 1000000 + time[2])
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

-- Keys of another type fail in the reading, before the first write.
local beats_until, moved, count = 0, {}, redis.call('LLEN', list)
if scope == 'worker' then
  beats_until = tonumber(redis.call('ZSCORE', workers, session) or 0)
  moved = count > 0 and unseen(list, wanted) or moved
end

-- Most queues most of the time have none of these: one question for all.
local is_plain = redis.call('EXISTS', paused, later, handed, unique, leased, retired) == 0
local due_in_ms = -1
if not is_plain then
  if redis.call('EXISTS', paused) == 1 then
    redis.call('LLEN', ready)
    put_back({ready = ready}, list, moved)
    return {now_us, 1, -1}
  end
  -- Keys of another type fail here, before the first write.
  for _, key in ipairs({leased, retired}) do redis.call('ZCARD', key) end
  redis.call('HLEN', unique)
  due_in_ms = next_in_ms(later, now_ms)
end

-- What was moved is in the list already and is taken whatever its size: a waiting claim
-- moves one job.
local elements, budget = {}, new_budget(wanted, most_bytes)
for i, element in ipairs(moved) do
  may_take(budget, element)
  elements[i] = element
end

local from_handed = (is_plain or (asked == 'moved' and scope == 'worker')) and 0
  or take_from_tail(handed, budget, elements)
local from_ready = asked == 'moved' and 0 or take_from_tail(ready, budget, elements)

-- A claim is a heartbeat only of a worker that holds nothing: it knows nothing of what
-- is held already. What it leases then has an end of its own, until a heartbeat names it.
local end_ms, has_own_end = now_ms + lease_ms, true
if scope == 'worker' and (#elements > 0 or asked == 'waiting') then
  local holds_nothing = beats_until == 0 or count == #moved
  if holds_nothing and beats_until < end_ms then
    if beats_until == 0 then redis.call('ZREM', retired, session) end
    redis.call('ZADD', workers, end_ms, session)
    beats_until = end_ms
  end
  has_own_end = beats_until ~= end_ms
end
if #elements == 0 then return {now_us, 0, due_in_ms} end

-- How an element is leased: {entry, kind, lease (ms)} as several results, which costs
-- no table.
local function lease_one(element, number)
  local job = read_entry(element)
  if not job then
    local id = nonce .. '-bare-' .. number
    return bare_header .. string.char(#id) .. id .. element, 'p', lease_ms
  end
  -- While it is leased it cannot expire, so its key is not free then either.
  if (job.expires_at or 0) > 0 then hold_until(unique, job, 0) end
  local kind = (job.flags % 4 ~= 0 or job.attempt > 0) and 't' or 'p'
  return with_attempt(element, job.attempt + 1), kind, job.lease_ms or lease_ms
end

local answer, leases, ends = {now_us, 0, due_in_ms}, {}, {}
for i, element in ipairs(elements) do
  -- Counted from 10001, so that leases of one claim sort by their number.
  local number = 10000 + i
  local entry, kind, ms = lease_one(element, number)
  local name = session .. '/' .. now_us .. '/' .. nonce .. '-' .. number .. kind
  leases[i] = stamped(name, entry)
  answer[i + 3] = leases[i]
  if has_own_end then
    ends[#ends + 1] = now_ms + ms
    ends[#ends + 1] = name
  end
end

if has_own_end then redis.call('ZADD', leased, unpack(ends)) end
redis.call('LPUSH', list, unpack(leases))
for _, element in ipairs(moved) do redis.call('LREM', list, 1, element) end
if from_handed > 0 then redis.call('LTRIM', handed, 0, -from_handed - 1) end
if from_ready > 0 then redis.call('LTRIM', ready, 0, -from_ready - 1) end
return answer
