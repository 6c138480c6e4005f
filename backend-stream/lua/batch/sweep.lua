-- Drops or buries pieces that no worker holds. Needs pieces.lua and moves.lua.

-- Drops a cancelled batch's ready pieces, as many as the step has room for. A piece
-- that was never delivered is read into the group first.
local function drop_ready(keys, id, step)
  local stream = batch_key(keys, 'pieces', id)
  local function drop(sid, entry, job)
    count_job(step, entry)
    redis.call('XACK', stream, GROUP, sid)
    redis.call('XDEL', stream, sid)
    if job then cancel_piece(keys, id, job) end
    settle_dropped(keys, step)
  end
  local function next_unread()
    local unread = redis.call('XREADGROUP', 'GROUP', GROUP, READY, 'COUNT', 1, 'STREAMS',
      stream, '>')
    return unread and unread[1][2][1]
  end
  if redis.call('EXISTS', stream) == 0 then return end
  for _, one in ipairs(in_group('XPENDING', stream, GROUP, '-', '+', step.jobs, READY)) do
    if not has_room(step) then return end
    drop(one[1], read_at(stream, one[1]))
  end
  while has_room(step) and redis.call('EXISTS', stream) == 1 do
    local found = next_unread()
    if not found then return end
    drop(found[1], entry_of(found[1], found[2]))
  end
end

-- The scheduled piece with this batch and id, or nil. Another job may be scheduled
-- under the id: a plain job, or a piece of another batch.
local function read_later(keys, id, job_id, step)
  if not redis.call('ZSCORE', keys.later, job_id) then return nil end
  local entry = redis.call('HGET', keys.jobs, job_id)
  count_job(step, entry)
  local job = read_entry(entry or '')
  return job and job.batch == id and job or nil
end

-- Drops the batch's scheduled pieces, as many as the step has room for.
local function drop_later(keys, id, step)
  local live, cursor = batch_key(keys, 'live', id), '0'
  repeat
    local found = redis.call('SSCAN', live, cursor, 'COUNT', 100)
    cursor = found[1]
    for _, job_id in ipairs(found[2]) do
      local job = has_room(step) and read_later(keys, id, job_id, step)
      if job then
        redis.call('ZREM', keys.later, job_id)
        redis.call('HDEL', keys.jobs, job_id)
        cancel_piece(keys, id, job)
        settle_dropped(keys, step)
      end
    end
  until cursor == '0' or not has_room(step)
end

-- Buries pieces whose entries another client has deleted: the batch's stream is empty,
-- and these pieces are not scheduled either. Checks a few pieces, and returns whether
-- it found a deleted one.
local function bury_lost_pieces(keys, id, few, step)
  local stream, live = batch_key(keys, 'pieces', id), batch_key(keys, 'live', id)
  if redis.call('XLEN', stream) > 0 or count_leased(stream) > 0 then return false end
  local has_found = false
  for _, job_id in ipairs(redis.call('SRANDMEMBER', live, few)) do
    if not has_room(step) then return has_found end
    if not read_later(keys, id, job_id, step) then
      bury_deleted(keys, stream, '0-0', job_id)
      end_piece(keys, id, job_id, 'failed')
      has_found = true
    end
  end
  return has_found
end

-- Continues a cancel. Returns whether more pieces must be dropped. The batch completes
-- with its last piece, or here if it has none. The set `cancelling` is only a hint: the
-- state in the record decides.
local function cancel_page(keys, id, step)
  if state_of(keys, id) ~= 'cancelling' then
    redis.call('SREM', batch_key(keys, 'cancelling'), id)
    return false
  end
  drop_ready(keys, id, step)
  if has_room(step) then drop_later(keys, id, step) end
  complete_if_over(keys, id, server_ms())
  local has_more = not has_room(step) and state_of(keys, id) == 'cancelling'
  redis.call(has_more and 'SADD' or 'SREM', batch_key(keys, 'cancelling'), id)
  return has_more
end
