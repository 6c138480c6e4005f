#!lua flags=allow-oom
-- Continue unfinished cancels, bury pieces that another client has deleted, release
-- pieces that are held without a lease, complete batches that could not complete when
-- their last piece ended, and remove a page of batches whose retention has passed. A
-- batch that is still in the outbox stays.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] how many pieces and batches at most
--
-- Returns 1 if there is more work else 0.
--
-- Library: entry, side_records, pattern, batch/records, batch/sweep, moves
local keys = bind_keys()
local page = tonumber(ARGV[1])
local step = new_step(page)
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
check_batches(keys)
check_leaders(keys)
-- Batches are chosen at random. A later call finds those that this call misses.
local FEW, has_lost = 10, false
local some = redis.call('ZRANDMEMBER', batch_key(keys, 'running'), FEW)
local id = redis.call('SRANDMEMBER', batch_key(keys, 'cancelling'))
for _, one in ipairs(some) do check_batch(keys, one) end
if id then check_batch(keys, id) end
if id then cancel_page(keys, id, step) end

for _, running in ipairs(some) do
  has_lost = bury_lost_pieces(keys, running, FEW, step) or has_lost
  complete_if_over(keys, running, now_ms)
  local stream = batch_key(keys, 'pieces', running)
  local returned, gone = return_unleased(keys, stream, page, step)
  if returned + #gone > 0 then
    refresh(keys, running)
    has_lost = true
  end
  -- The next call drops the pieces that came back to a cancelled batch.
  if returned > 0 and state_of(keys, running) == 'cancelling' then
    redis.call('SADD', batch_key(keys, 'cancelling'), running)
  end
end

local old = redis.call('ZRANGE', batch_key(keys, 'ended'), '-inf', now_ms, 'BYSCORE',
  'LIMIT', 0, page)
for _, one in ipairs(old) do
  if redis.call('SISMEMBER', batch_key(keys, 'outbox'), one) == 1 then
    redis.call('ZADD', batch_key(keys, 'ended'), now_ms + 1000, one)
  else
    redis.call('UNLINK', batch_key(keys, 'record', one))
    redis.call('ZREM', batch_key(keys, 'ids'), one)
    redis.call('ZREM', batch_key(keys, 'ended'), one)
  end
end
-- Without batches, the stream of completions is removed. A caller that waits on it
-- reads its batch's record again and finds that the batch is gone.
if redis.call('EXISTS', batch_key(keys, 'ids')) == 0 then
  redis.call('UNLINK', batch_key(keys, 'told'))
end
local is_cancelling = redis.call('EXISTS', batch_key(keys, 'cancelling')) == 1
return (is_cancelling or has_lost or #old == page) and 1 or 0
