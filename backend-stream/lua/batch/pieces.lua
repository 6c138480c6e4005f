-- What batches keep, and how a piece leaves them. Needs pattern.lua.
--
-- Keys, all behind `batches`, those without an id of the whole queue:
--   running    ZSET    id -> rank: not completed
--   claimable  ZSET    the same, of those with a ready piece and a free slot
--   ids        ZSET    all ids, in their order
--   outbox     SET     ids whose completion is to be told to another queue
--   cancelling SET     ids of cancelled ones of which pieces are still to be dropped
--   told       STREAM  the last completion, for who waits for one
--   ended      ZSET    id -> when the record is to be removed (ms)
--   record:ID  HASH    what the batch is, and what its pieces came to
--   pieces:ID  STREAM  its pieces that are ready or leased, as `streams` keep jobs
--   live:ID    SET     ids of the jobs of its pieces that have not ended

local function state_of(keys, id)
  return redis.call('HGET', batch_key(keys, 'record', id), 'state')
end

-- How many pieces workers hold: the slots in use are those of the consumer `leased`.
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

-- The place of a batch among all: the most urgent first, of equal ones the older.
local function rank_of(priority, number)
  return (99 - priority) * 2 ^ 40 + number
end

-- Whether and when the batch can be claimed from, after any change that bears on it.
local function refresh(keys, id)
  local stream = batch_key(keys, 'pieces', id)
  local record = redis.call('HMGET', batch_key(keys, 'record', id), 'state', 'priority',
    'number', 'limit')
  local state, limit = record[1], tonumber(record[4] or 0)
  local leased = count_leased(stream)
  local is_open = state == 'open' or state == 'sealed'
  local is_free = limit == 0 or leased < limit
  if is_open and is_free and redis.call('XLEN', stream) > leased then
    local rank = rank_of(record[2], record[3])
    redis.call('ZADD', batch_key(keys, 'claimable'), rank, id)
    ring(keys)
  else
    redis.call('ZREM', batch_key(keys, 'claimable'), id)
  end
end

-- Pushes the job that tells of a completion to the batch's own queue. Its id is like a
-- client's own, so that it would be found if it was there.
local function push_completion(keys, record, now_ms)
  local entry = redis.call('HGET', record, 'completion')
  local times = redis.call('HMGET', record, 'completion_delay_ms', 'completion_expires_ms')
  local delay_ms, expires_ms = tonumber(times[1]), tonumber(times[2])
  local job = read_entry(entry)
  local forget_at = redis.call('ZSCORE', keys.ids, job.id)
  if forget_at and tonumber(forget_at) > now_ms then return end
  redis.call('ZADD', keys.ids, '+inf', job.id)
  if expires_ms > 0 then entry = with_expiry(entry, job, now_ms + expires_ms) end
  if delay_ms > 0 then
    keep(keys, job, entry)
    redis.call('ZADD', keys.later, now_ms + delay_ms, job.id)
  else
    add(stream_of(keys, job), entry)
  end
  ring(keys)
end

-- Ends a batch: its record, and in the same step the job that tells of it or the note
-- that somebody has to tell another queue.
local function complete(keys, id, now_ms)
  local record = batch_key(keys, 'record', id)
  -- Keys of another type fail here, before the first write; `tend` completes it then.
  redis.call('XLEN', batch_key(keys, 'told'))
  redis.call('ZCARD', batch_key(keys, 'ended'))
  redis.call('SCARD', batch_key(keys, 'outbox'))
  check_ready(keys)
  local fields = redis.call('HMGET', record, 'state', 'failed', 'retention_ms', 'tells')
  local outcome = 'done'
  if tonumber(fields[2]) > 0 then outcome = 'failed' end
  if fields[1] == 'cancelling' then outcome = 'cancelled' end
  if fields[4] == 'here' then push_completion(keys, record, now_ms) end
  if fields[4] == 'there' then redis.call('SADD', batch_key(keys, 'outbox'), id) end
  redis.call('HSET', record, 'state', outcome, 'completed_ms', now_ms)
  redis.call('ZADD', batch_key(keys, 'ended'), now_ms + fields[3], id)
  redis.call('ZREM', batch_key(keys, 'running'), id)
  redis.call('ZREM', batch_key(keys, 'claimable'), id)
  redis.call('UNLINK', batch_key(keys, 'pieces', id))
  redis.call('XADD', batch_key(keys, 'told'), 'MAXLEN', 1, '*', 'batch', id)
end

-- Completes a batch that takes no more pieces and has none that lives.
local function complete_if_over(keys, id, now_ms)
  local state = state_of(keys, id)
  if state ~= 'sealed' and state ~= 'cancelling' then return end
  if redis.call('EXISTS', batch_key(keys, 'live', id)) == 0 then complete(keys, id, now_ms) end
end

-- Counts a piece that has ended, as it is taken out of those that live: so it is counted
-- once, whoever comes again (B2). `how` is a field of the record.
local function end_piece(keys, id, job_id, how)
  if redis.call('SREM', batch_key(keys, 'live', id), job_id) == 0 then return end
  redis.call('HINCRBY', batch_key(keys, 'record', id), how, 1)
  complete_if_over(keys, id, server_ms())
end

local close_any = close_books

-- Cleans up behind a piece that is dropped with its batch.
local function cancel_piece(keys, id, job)
  close_any(keys, job, server_ms(), MEMORY_MS)
  redis.call('HINCRBY', keys.totals, 'cancelled', 1)
  end_piece(keys, id, job.id, 'dropped')
end

local function piece_left(keys, id, job_id, outcome)
  if outcome == 'cancelled' then
    cancel_piece(keys, id, keys.found.job)
  elseif outcome ~= 'returned' and outcome ~= 'later' then
    end_piece(keys, id, job_id, outcome)
  end
  refresh(keys, id)
end

-- Takes a lease out of its place, and the job, unless it stays there. `keys.outcome`
-- says what became of it: 'returned', 'later', 'failed', 'done', 'cancelled' with its
-- batch, or nothing when it was dropped.
local function drop_leased(keys, lease)
  local outcome = keys.outcome
  keys.outcome = nil
  local stream, sid, _, batch = place_of(keys, lease)
  redis.call('ZREM', keys.leased, lease)
  if outcome ~= 'returned' then
    redis.call('XACK', stream, GROUP, sid)
    redis.call('XDEL', stream, sid)
  end
  if batch then piece_left(keys, batch, job_of(lease), outcome or 'dropped') end
end

-- What has no entry any more is buried here, and its lease is lost.
local function find_leased(keys, lease)
  local end_ms = redis.call('ZSCORE', keys.leased, lease)
  if not end_ms then return nil end
  local stream, sid, attempt, batch = place_of(keys, lease)
  local entry, job = read_at(stream, sid)
  if not entry then
    bury_deleted(keys, stream, sid, job_of(lease))
    keys.outcome = 'failed'
    drop_leased(keys, lease)
    return nil
  end
  keys.found = {stream = stream, sid = sid, job = job, batch = batch}
  return with_attempt(entry, attempt), end_ms
end

-- A piece that was to be tried again goes to the back of its batch; one that is of no
-- batch any more, as after a redrive, is a plain job (B8).
local function make_piece_ready(keys, job, entry)
  local id = job.batch
  if redis.call('SISMEMBER', batch_key(keys, 'live', id), job.id) == 0 then
    add(stream_of(keys, job), without_batch(entry, job))
  elseif state_of(keys, id) == 'cancelling' then
    cancel_piece(keys, id, job)
  else
    add(batch_key(keys, 'pieces', id), entry)
    refresh(keys, id)
  end
end

-- What comes back from a worker is at the front, where it was; any other job goes to the
-- back. Nothing comes back to a batch that is cancelled (B7).
local function make_ready(keys, job, entry, direction)
  if direction == 'front' then
    local batch = keys.found.batch
    if batch and state_of(keys, batch) == 'cancelling' then
      keys.outcome = 'cancelled'
    else
      return_found(keys, entry)
    end
  elseif job.batch then
    make_piece_ready(keys, job, entry)
  else
    add(stream_of(keys, job), entry)
    if job.priority ~= NORMAL then ring(keys) end
  end
end

-- What is buried has failed.
local bury_any = bury
local function bury(keys, job, entry, why, now_ms)
  bury_any(keys, job, entry, why, now_ms)
  keys.outcome = 'failed'
end

-- A piece that an operator cancels while it is scheduled is dropped; of one that was
-- leased this has been counted.
local function close_books(keys, job, now_ms, window_ms)
  close_any(keys, job, now_ms, window_ms)
  if job.batch then end_piece(keys, job.batch, job.id, 'dropped') end
end

-- What is known of a batch, or false: see record.rs.
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

-- Drops up to a page of a cancelled batch's pieces that are ready; answers how many.
local function drop_ready(keys, id, page)
  local stream, dropped = batch_key(keys, 'pieces', id), 0
  local function drop(sid)
    local _, job = read_at(stream, sid)
    redis.call('XACK', stream, GROUP, sid)
    redis.call('XDEL', stream, sid)
    if job then cancel_piece(keys, id, job) end
    dropped = dropped + 1
  end
  if redis.call('EXISTS', stream) == 0 then return 0 end
  for _, one in ipairs(in_group('XPENDING', stream, GROUP, '-', '+', page, READY)) do
    drop(one[1])
  end
  if dropped == page or redis.call('EXISTS', stream) == 0 then return dropped end
  local unread = redis.call('XREADGROUP', 'GROUP', GROUP, READY, 'COUNT', page - dropped,
    'STREAMS', stream, '>')
  for _, found in ipairs(unread and unread[1][2] or {}) do drop(found[1]) end
  return dropped
end

-- Drops up to a page of its pieces that wait for another try; answers how many.
local function drop_later(keys, id, page)
  local live, dropped, cursor = batch_key(keys, 'live', id), 0, '0'
  repeat
    local found = redis.call('SSCAN', live, cursor, 'COUNT', 100)
    cursor = found[1]
    for _, job_id in ipairs(found[2]) do
      if dropped < page and redis.call('ZREM', keys.later, job_id) == 1 then
        local job = read_entry(redis.call('HGET', keys.jobs, job_id) or '')
        redis.call('HDEL', keys.jobs, job_id)
        if job then cancel_piece(keys, id, job) end
        dropped = dropped + 1
      end
    end
  until cursor == '0' or dropped == page
  return dropped
end

-- Buries pieces that are nowhere, because somebody else has deleted their entries: none
-- of the batch is in its stream, and some are not scheduled either. Looks at a few, and
-- answers whether it found any.
local function bury_lost_pieces(keys, id, few)
  local stream, live = batch_key(keys, 'pieces', id), batch_key(keys, 'live', id)
  if redis.call('XLEN', stream) > 0 or count_leased(stream) > 0 then return false end
  local has_found = false
  for _, job_id in ipairs(redis.call('SRANDMEMBER', live, few)) do
    if not redis.call('ZSCORE', keys.later, job_id) then
      bury_deleted(keys, stream, '0-0', job_id)
      end_piece(keys, id, job_id, 'failed')
      has_found = true
    end
  end
  return has_found
end

-- Goes on with a cancel; answers whether there is more to be dropped. It completes with
-- the last piece, or here if it has none.
local function cancel_page(keys, id, page)
  local dropped = drop_ready(keys, id, page)
  if dropped < page then dropped = dropped + drop_later(keys, id, page - dropped) end
  complete_if_over(keys, id, server_ms())
  local has_more = dropped == page and state_of(keys, id) == 'cancelling'
  redis.call(has_more and 'SADD' or 'SREM', batch_key(keys, 'cancelling'), id)
  return has_more
end
