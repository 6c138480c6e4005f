#!lua flags=allow-oom
-- Lease ready jobs: first those of the upper priority, then those of normal priority,
-- then those of the lower priority, and then pieces of batches, from the most urgent
-- batch with a free slot first (B4). In each stream, returned jobs come before jobs
-- that were never delivered.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] worker
-- ARGV[2] nonce of this call
-- ARGV[3] lease (ms)
-- ARGV[4] how many jobs at most
-- ARGV[5] how many bytes at most; one job may be larger
--
-- Returns {now (ms), 1 if paused else 0, ms until the next delayed job is due or -1,
-- how many were buried because their entry was deleted or has no payload, token, entry,
-- ...}. The attempts in an entry do not include the deliveries since the entry was
-- added; those in the token do.
--
-- Library: entry, side_records, pattern, batch/records, moves
local keys = bind_keys()
local worker, nonce, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local wanted, most_bytes = tonumber(ARGV[4]), tonumber(ARGV[5])
local HEAD = 4

local time = redis.call('TIME')
local now_us = string.format('%.0f', time[1] * 1000000 + time[2])
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

-- Most queues are not paused and have no delayed jobs, other priorities or batches, so
-- one EXISTS checks for all of these keys.
local claimable = batch_key(keys, 'claimable')
local is_plain = redis.call('EXISTS', keys.paused, keys.later, keys.streams.u,
  keys.streams.p, claimable) == 0
local due_in_ms = is_plain and -1 or next_in_ms(keys.later, now_ms)
if not is_plain and redis.call('EXISTS', keys.paused) == 1 then
  return {now_ms, 1, due_in_ms, 0}
end

-- If a key has another type, the script fails here, before its first write. A missing
-- key needs no check. With a single stream, the first read of it comes before any
-- write.
redis.call('ZCARD', keys.leased)
redis.call('LLEN', keys.wake)
if redis.call('EXISTS', keys.unique, keys.jobs, keys.dead, keys.errors) > 0 then
  check_bookkeeping(keys)
end
local is_checked = {}
if not is_plain then
  check_ready(keys)
  for _, id in ipairs(redis.call('ZRANGE', claimable, 0, wanted - 1)) do
    check_batch(keys, id)
    is_checked[id] = true
  end
end

local answer, ends, buried, is_more = {now_ms, 0, due_in_ms, 0}, {}, 0, false
local name = worker .. '/' .. now_us .. '/' .. nonce .. '-'
-- As text, because the server would have to format the number for each job.
local usual_end = now_ms + lease_ms .. ''
local budget = new_budget(wanted, most_bytes)

local function count()
  return #ends / 2
end

-- Leases an entry. If the entry exceeds the budget, it is put back before all entries
-- that were never delivered. Returns the entry's bytes. `word` stands for the stream in
-- the lease. A piece always has a side record: its batch.
local function lease(word, stream, sid, fields, deliveries)
  local entry, job = entry_of(sid, fields)
  if lacks_payload(fields) then
    bury(keys, job, entry, 'mits entry has no field "job"; the headers have its fields', now_ms)
    redis.call('XACK', stream, GROUP, sid)
    redis.call('XDEL', stream, sid)
    buried = buried + 1
    return #entry
  end
  if not may_take(budget, entry) then
    return_entry(stream, sid, deliveries - 1)
    return #entry
  end
  hold_while_leased(keys.unique, job, now_ms)
  local has_side_records = job.flags % 4 ~= 0 or job.attempt + deliveries > 1 or #word > 1
  -- Concatenating a number would format it as a fraction, which takes much longer.
  local counts = string.format('%d/%s%d.%d/', count() + 1, has_side_records and 't' or 'p',
    job.attempt + deliveries, deliveries)
  local token = name .. counts .. word .. ':' .. sid
  ends[#ends + 1] = job.lease_ms and now_ms + job.lease_ms or usual_end
  ends[#ends + 1] = token .. '/' .. job.id
  answer[#answer + 1] = token
  answer[#answer + 1] = entry
  return #entry
end

-- Takes entries that a worker returned or that a notifier read. The server does not
-- return entries that were deleted. A deleted piece is left to `tend`, which buries it.
-- Returns the bytes of the entries.
local function take_back(word, stream, back)
  local sids, deliveries, bytes = {}, {}, 0
  for i, pending in ipairs(back) do
    sids[i], deliveries[pending[1]] = pending[1], pending[4]
  end
  for _, found in ipairs(redis.call('XCLAIM', stream, GROUP, LEASED, 0, unpack(sids))) do
    bytes = bytes + lease(word, stream, found[1], found[2], deliveries[found[1]])
    deliveries[found[1]] = nil
  end
  for sid in pairs(deliveries) do
    if #word == 1 then bury_deleted(keys, stream, sid, sid) end
    buried = buried + 1
  end
  return bytes
end

-- Takes a page of returned entries. Returns how many entries and bytes it had.
local function take_returned(word, stream, page)
  local back = in_group('XPENDING', stream, GROUP, '-', '+', page, READY)
  return #back, #back > 0 and take_back(word, stream, back) or 0
end

-- Takes a page of entries that were never delivered. Returns how many entries and bytes
-- it had.
local function take_new(word, stream, page)
  local unread = redis.call('XREADGROUP', 'GROUP', GROUP, LEASED, 'COUNT', page,
    'STREAMS', stream, '>')
  unread = unread and unread[1][2] or {}
  local bytes = 0
  for _, found in ipairs(unread) do
    bytes = bytes + lease(word, stream, found[1], found[2], 1)
  end
  return #unread, bytes
end

-- Leases as many entries of a stream as fit, the returned ones first. Returns whether
-- the stream may have more ready entries that nobody was notified of.
local function take(word, stream, room)
  local take_page, page, page_bytes, count = take_returned, nil, 0, 0
  while room > 0 and budget.jobs > 0 do
    page = math.min(room, next_page(budget, page, page_bytes))
    count, page_bytes = take_page(word, stream, page)
    room = room - count
    if count < page and take_page == take_new then return false end
    if count < page then take_page, page = take_new, nil end
  end
  -- An entry that is added to the stream of normal priority wakes a waiter by itself.
  return word ~= 'n' or take_page == take_returned or budget.is_full
end

for _, level in ipairs(LEVELS) do
  local stream, room = keys.streams[level], budget.jobs
  if level == 'n' or (not is_plain and redis.call('EXISTS', stream) == 1) then
    is_more = room == 0 or take(level, stream, room) or is_more
    if level ~= 'n' and budget.jobs > 0 then remove_empty(stream) end
  end
end

-- Each pass leases a piece, finds a deleted one, or removes the batch from the
-- claimable ones. So the loop ends.
while not is_plain and budget.jobs > 0 do
  local id = redis.call('ZRANGE', claimable, 0, 0)[1] or ''
  -- A batch that was not checked before the first write is left to the next claim.
  if not is_checked[id] then break end
  local stream, room = batch_key(keys, 'pieces', id), budget.jobs
  local leased_before, buried_before = #ends, buried
  local limit = number_or(0, redis.call('HGET', batch_key(keys, 'record', id), 'limit'))
  if limit > 0 then room = math.min(room, limit - count_leased(stream)) end
  if room > 0 then take('b:' .. id, stream, room) end
  refresh(keys, id)
  if #ends == leased_before and buried == buried_before and not budget.is_full then
    redis.call('ZREM', claimable, id)
  end
end
if #ends > 0 then redis.call('ZADD', keys.leased, unpack(ends)) end
-- One notification wakes one worker, and its claim wakes the next. New entries of
-- normal priority wake a waiter by themselves.
is_more = is_more or buried > 0 or not is_plain and redis.call('EXISTS', claimable) == 1
if is_more then notify(keys) end
answer[HEAD] = buried
return answer
