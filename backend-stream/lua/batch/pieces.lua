-- Moves pieces out of their batch and back into it. Needs side_records.lua.
local close_any = close_side_records

-- Frees the side records of a piece that is dropped with its batch.
local function cancel_piece(keys, id, job)
  close_any(keys, job, server_ms(), MEMORY_MS, 'cancelled')
  add_to_total(keys.totals, 'cancelled', 1)
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

-- Removes a lease, and its job unless the job stays in the stream. `keys.outcome` says
-- what happened to the job: 'returned', 'later', 'failed', 'done', 'cancelled' with its
-- batch, or nil when it was dropped.
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

-- Finds a leased job. Returns its entry and the end of its lease. Returns nil if there is no
-- such job, and false if its stream entry was deleted and this call has buried the job.
local function find_leased(keys, lease)
  local end_ms = redis.call('ZSCORE', keys.leased, lease)
  if not end_ms then return nil end
  local stream, sid, attempt, batch = place_of(keys, lease)
  if not stream then
    redis.call('ZREM', keys.leased, lease)
    return nil
  end
  local entry, job = read_at(stream, sid)
  if not entry then
    local id = job_of(lease)
    if batch and redis.call('SISMEMBER', batch_key(keys, 'live', batch), id) == 0 then
      -- An interrupted purge has removed the piece.
      redis.call('ZREM', keys.leased, lease)
      return nil
    end
    bury_deleted(keys, stream, sid, id)
    keys.outcome = 'failed'
    drop_leased(keys, lease)
    return false
  end
  keys.found = {stream = stream, sid = sid, job = job, batch = batch}
  return with_attempt(entry, attempt), end_ms
end

-- Appends a retried piece to its batch. A piece that is no longer in its batch, as
-- after a redrive, becomes a plain job (B8).
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

-- A job that a worker returns keeps its position at the front. Any other job is
-- appended. Nothing returns to a cancelled batch (B7).
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
    if job.priority ~= NORMAL then notify(keys) end
  end
end

-- Buries a job. If it is a piece, its batch counts it as failed.
local bury_any = bury
local function bury(keys, job, entry, why, now_ms)
  bury_any(keys, job, entry, why, now_ms)
  keys.outcome = 'failed'
end

-- Frees the side records of a job that ends. If an operator cancelled a scheduled
-- piece, its batch counts it here; a leased piece has been counted already.
local function close_side_records(keys, job, now_ms, window_ms, total, value)
  close_any(keys, job, now_ms, window_ms, total, value)
  if job.batch then end_piece(keys, job.batch, job.id, 'dropped') end
end
