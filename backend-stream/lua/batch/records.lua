-- The keys of batches. Needs pattern.lua.
--
-- The names of all keys begin with `batches`. Keys without an id belong to the queue:
--   running    ZSET    id -> rank: batches that have not completed
--   claimable  ZSET    id -> rank: batches with a ready piece and a free slot
--   ids        ZSET    all ids, in their order
--   outbox     SET     ids whose completion job must be pushed to another queue
--   cancelling SET     ids of cancelled batches that still have pieces to drop
--   told       STREAM  the last completion, for callers that wait for one
--   ended      ZSET    id -> when the record is removed (ms)
--   record:ID  HASH    the batch's fields, and counts of its ended pieces
--   pieces:ID  STREAM  its ready and leased pieces, stored like jobs in `streams`
--   live:ID    SET     job ids of its pieces that have not ended

-- Makes the script fail, before its first write, if a key that all batches share has
-- another type.
local function check_batches(keys)
  for _, what in ipairs({'running', 'claimable', 'ids', 'ended'}) do
    redis.call('ZCARD', batch_key(keys, what))
  end
  for _, what in ipairs({'outbox', 'cancelling'}) do redis.call('SCARD', batch_key(keys, what)) end
  redis.call('XLEN', batch_key(keys, 'told'))
end

-- The batches that this call has checked: a call often settles many pieces of one batch.
local is_checked = {}

-- Makes the script fail, before its first write, if a key of this batch or a key that
-- all batches share has another type.
local function check_batch(keys, id)
  if is_checked[id] then return end
  is_checked[id] = true
  check_batches(keys)
  redis.call('HLEN', batch_key(keys, 'record', id))
  redis.call('XLEN', batch_key(keys, 'pieces', id))
  redis.call('SCARD', batch_key(keys, 'live', id))
end

-- The same before a piece of this batch may be dropped, which may have followers.
local function check_piece(keys, id)
  check_batch(keys, id)
  check_leaders(keys)
end

local function check_lease(keys, lease)
  if not redis.call('ZSCORE', keys.leased, lease) then return end
  local _, _, _, batch = place_of(keys, lease)
  if batch then check_piece(keys, batch) end
end

local function check_job(keys, job)
  if job and job.batch then check_piece(keys, job.batch) end
end

-- Converts a field of a record to a number. Another client may have overwritten the
-- field with text. That must not make a script fail after its first write, so such a
-- field counts as `default`. A call that reads the batch's status then fails.
local function number_or(default, text)
  return tonumber(text or default) or default
end

local function state_of(keys, id)
  return redis.call('HGET', batch_key(keys, 'record', id), 'state')
end

-- Returns how many pieces of a batch workers hold, given the batch's stream. Each entry
-- that the consumer `leased` holds uses one slot of the batch.
local function count_leased(stream)
  local pending = redis.pcall('XPENDING', stream, GROUP)
  if pending.err then
    if pending.err:sub(1, 7) ~= 'NOGROUP' then error(pending) end
    return 0
  end
  for _, consumer in ipairs(pending[4] or {}) do
    if consumer[1] == LEASED then return tonumber(consumer[2]) end
  end
  return 0
end

-- With more leases than this, entries without a lease are not searched for: the search
-- reads all leases, and the server runs nothing else meanwhile.
local MOST_LEASES = 1000

-- Workers may hold entries without a lease, because another client has deleted the
-- lease. This makes such entries ready. It searches only if the stream has more held
-- entries than leases. It also releases held entries that were deleted. Returns how
-- many entries of a page are ready again, and the ids of the deleted ones.
local function return_unleased(keys, stream, page, step)
  local leases = redis.call('ZCARD', keys.leased)
  if leases > MOST_LEASES or count_leased(stream) <= leases then return 0, {} end
  local is_leased, returned, gone = {}, 0, {}
  for _, lease in ipairs(redis.call('ZRANGE', keys.leased, 0, -1)) do
    local where, sid = place_of(keys, lease)
    if where == stream then is_leased[sid] = true end
  end
  local held = redis.call('XPENDING', stream, GROUP, '-', '+', leases + page, LEASED)
  for _, one in ipairs(held) do
    local sid, deliveries = one[1], one[4]
    local is_lost = not is_leased[sid] and has_room(step)
    local entry = is_lost and read_at(stream, sid)
    -- Only what is returned or released costs time. Otherwise an entry that stands behind a
    -- page of leased ones would never come back.
    if is_lost then count_job(step, entry) end
    if entry then
      -- The server counts a delivery by XCLAIM beside those of the attempts.
      return_entry(stream, sid, math.max(1, deliveries - 1))
      returned = returned + 1
    elseif is_lost then
      redis.call('XACK', stream, GROUP, sid)
      gone[#gone + 1] = sid
    end
  end
  return returned, gone
end

-- The rank of a batch: the most urgent first, and the older first among equals.
local function rank_of(priority, number)
  return (99 - number_or(NORMAL, priority)) * 2 ^ 40 + number_or(0, number)
end

-- Adds a batch to the set `claimable`, or removes it. Called after every change that
-- may affect whether its pieces can be claimed.
local function refresh(keys, id)
  local stream = batch_key(keys, 'pieces', id)
  local record = redis.call('HMGET', batch_key(keys, 'record', id), 'state', 'priority',
    'number', 'limit')
  local state, limit = record[1], number_or(0, record[4])
  local leased = count_leased(stream)
  local is_open = state == 'open' or state == 'sealed'
  local is_free = limit == 0 or leased < limit
  if is_open and is_free and redis.call('XLEN', stream) > leased then
    local rank = rank_of(record[2], record[3])
    redis.call('ZADD', batch_key(keys, 'claimable'), rank, id)
    notify(keys)
  else
    redis.call('ZREM', batch_key(keys, 'claimable'), id)
  end
end

-- Pushes the completion job to the batch's own queue. Its id is remembered like a
-- client's own, so a second push of the job would be found.
local function push_completion(keys, record, job, entry, now_ms)
  local times = redis.call('HMGET', record, 'completion_delay_ms', 'completion_expires_ms')
  local delay_ms, expires_ms = number_or(0, times[1]), number_or(0, times[2])
  local forget_at = redis.call('ZSCORE', keys.ids, job.id)
  if forget_at and tonumber(forget_at) > now_ms then return end
  redis.call('ZADD', keys.ids, '+inf', job.id)
  if job.keep_ms then begin_results(keys, {job.id, UNFINISHED}) end
  if expires_ms > 0 then entry = with_expiry(entry, job.id, now_ms + expires_ms) end
  entry = with_time(entry, job, ENQUEUE_TIME, now_ms)
  if delay_ms > 0 then
    keep(keys, job, entry)
    redis.call('ZADD', keys.later, behind_equals(keys.later, now_ms + delay_ms), job.id)
  else
    add(stream_of(keys, job), entry)
  end
  notify(keys)
end

-- Completes a batch: updates its record, and in the same step pushes the completion job
-- or adds the batch to the outbox for another queue.
local function complete(keys, id, now_ms)
  local record = batch_key(keys, 'record', id)
  -- If a key has another type, the script fails here, before its first write. A later
  -- run of `tend` completes the batch.
  redis.call('XLEN', batch_key(keys, 'told'))
  redis.call('ZCARD', batch_key(keys, 'ended'))
  for _, key in ipairs({'outbox', 'cancelling'}) do redis.call('SCARD', batch_key(keys, key)) end
  check_ready(keys)
  local fields =
    redis.call('HMGET', record, 'state', 'failed', 'retention_ms', 'tells', 'completion')
  -- A completion job that cannot be read is not pushed. The record still shows that the
  -- batch has completed.
  local job = fields[4] == 'here' and read_entry(fields[5] or '')
  if job and job.keep_ms then check_results(keys) end
  local outcome = 'done'
  if number_or(1, fields[2]) > 0 then outcome = 'failed' end
  if fields[1] == 'cancelling' then outcome = 'cancelled' end
  if job then push_completion(keys, record, job, fields[5], now_ms) end
  if fields[4] == 'there' then redis.call('SADD', batch_key(keys, 'outbox'), id) end
  redis.call('HSET', record, 'state', outcome, 'completed_ms', now_ms)
  redis.call('ZADD', batch_key(keys, 'ended'), now_ms + number_or(0, fields[3]), id)
  redis.call('ZREM', batch_key(keys, 'running'), id)
  redis.call('ZREM', batch_key(keys, 'claimable'), id)
  redis.call('SREM', batch_key(keys, 'cancelling'), id)
  redis.call('UNLINK', batch_key(keys, 'pieces', id))
  redis.call('XADD', batch_key(keys, 'told'), 'MAXLEN', 1, '*', 'batch', id)
end

-- Completes a batch that accepts no more pieces and has no live piece.
local function complete_if_over(keys, id, now_ms)
  local state = state_of(keys, id)
  if state ~= 'sealed' and state ~= 'cancelling' then return end
  if redis.call('EXISTS', batch_key(keys, 'live', id)) == 0 then complete(keys, id, now_ms) end
end

-- Counts a piece that has ended in the field `how` of the batch's record, and removes
-- it from the set of live pieces. A piece that is not in the set is not counted again
-- (B2).
local function end_piece(keys, id, job_id, how)
  if redis.call('SREM', batch_key(keys, 'live', id), job_id) == 0 then return end
  redis.pcall('HINCRBY', batch_key(keys, 'record', id), how, 1)
  complete_if_over(keys, id, server_ms())
end

-- Returns the status of a batch, or false if there is no such batch. Its fields are
-- parsed in record.rs.
local function status_of(keys, id)
  local known = redis.call('HMGET', batch_key(keys, 'record', id), 'state', 'priority',
    'limit', 'metadata', 'total', 'done', 'failed', 'dropped', 'created_ms', 'sealed_ms',
    'completed_ms')
  if not known[1] then return false end
  local leased = count_leased(batch_key(keys, 'pieces', id))
  local live = redis.call('SCARD', batch_key(keys, 'live', id))
  return {
    id, known[1], known[2], known[3], known[4], known[5], known[6], known[7], known[8],
    leased, math.max(0, live - leased), known[9], known[10] or -1, known[11] or -1,
  }
end
