#!lua flags=allow-oom
-- Change the priority or the limit of a batch that has not completed.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] id
-- ARGV[2] new priority, or empty
-- ARGV[3] new limit, 0 for none, or empty
--
-- Returns the new status of the batch, or false if there is no such batch.
--
-- Library: pattern, batch/records, moves
local keys = bind_keys()
local id, priority, limit = ARGV[1], ARGV[2], ARGV[3]
local record = batch_key(keys, 'record', id)

-- If a key has another type, the script fails here, before its first write.
check_batch(keys, id)
redis.call('LLEN', keys.wake)
if redis.call('ZSCORE', batch_key(keys, 'running'), id) then
  if limit ~= '' then redis.call('HSET', record, 'limit', limit) end
  if priority ~= '' then
    local number = redis.call('HGET', record, 'number')
    redis.call('HSET', record, 'priority', priority)
    redis.call('ZADD', batch_key(keys, 'running'), rank_of(priority, number), id)
  end
  refresh(keys, id)
end
return status_of(keys, id)
