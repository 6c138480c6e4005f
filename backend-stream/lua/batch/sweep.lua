-- Ends pieces that no worker holds. Needs pieces.lua.

-- Drops up to a page of a cancelled batch's ready pieces. Returns how many.
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

-- The scheduled piece with this batch and id, or nil. Another job may be scheduled
-- under the id: a plain job, or a piece of another batch.
local function read_later(keys, id, job_id)
  if not redis.call('ZSCORE', keys.later, job_id) then return nil end
  local job = read_entry(redis.call('HGET', keys.jobs, job_id) or '')
  return job and job.batch == id and job or nil
end

-- Drops up to a page of the batch's scheduled pieces. Returns how many.
local function drop_later(keys, id, page)
  local live, dropped, cursor = batch_key(keys, 'live', id), 0, '0'
  repeat
    local found = redis.call('SSCAN', live, cursor, 'COUNT', 100)
    cursor = found[1]
    for _, job_id in ipairs(found[2]) do
      local job = dropped < page and read_later(keys, id, job_id)
      if job then
        redis.call('ZREM', keys.later, job_id)
        redis.call('HDEL', keys.jobs, job_id)
        cancel_piece(keys, id, job)
        dropped = dropped + 1
      end
    end
  until cursor == '0' or dropped == page
  return dropped
end

-- Buries pieces whose entries another client has deleted: the batch's stream is empty,
-- and these pieces are not scheduled either. Checks a few pieces, and returns whether
-- it found a deleted one.
local function bury_lost_pieces(keys, id, few)
  local stream, live = batch_key(keys, 'pieces', id), batch_key(keys, 'live', id)
  if redis.call('XLEN', stream) > 0 or count_leased(stream) > 0 then return false end
  local has_found = false
  for _, job_id in ipairs(redis.call('SRANDMEMBER', live, few)) do
    if not read_later(keys, id, job_id) then
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
local function cancel_page(keys, id, page)
  if state_of(keys, id) ~= 'cancelling' then
    redis.call('SREM', batch_key(keys, 'cancelling'), id)
    return false
  end
  local dropped = drop_ready(keys, id, page)
  if dropped < page then dropped = dropped + drop_later(keys, id, page - dropped) end
  complete_if_over(keys, id, server_ms())
  local has_more = dropped == page and state_of(keys, id) == 'cancelling'
  redis.call(has_more and 'SADD' or 'SREM', batch_key(keys, 'cancelling'), id)
  return has_more
end
