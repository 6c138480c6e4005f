#!lua
-- Create an open batch without pieces.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] id
-- ARGV[2] priority
-- ARGV[3] limit, 0 for none
-- ARGV[4] metadata
-- ARGV[5] how long its record is kept after its completion (ms)
-- ARGV[6] queue of its completion job: 'here', 'there' (another queue) or empty
-- ARGV[7] name of that other queue, or empty
-- ARGV[8] entry of the completion job, with any id; or empty
-- ARGV[9] delay of the completion job (ms)
-- ARGV[10] expiry of the completion job (ms from the completion, 0 for none)
-- ARGV[11] what the id of the completion job ends with, behind the time of creation
--
-- Returns 1 if the batch was created, 0 if a batch with this id exists.
--
-- Library: entry, pattern, batch/records, moves
local keys = bind_keys()
local id, priority, limit, metadata, retention_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local tells, queue, entry, delay_ms, expires_ms = ARGV[6], ARGV[7], ARGV[8], ARGV[9], ARGV[10]
local id_end = ARGV[11]
local record = batch_key(keys, 'record', id)
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
for _, key in ipairs({'ids', 'running'}) do redis.call('ZCARD', batch_key(keys, key)) end
if redis.call('HLEN', record) > 0 then return 0 end
local number = redis.call('HINCRBY', keys.totals, 'batches', 1)
redis.call('HSET', record, 'state', 'open', 'priority', priority, 'number', number,
  'limit', limit, 'metadata', metadata, 'retention_ms', retention_ms, 'total', 0, 'done', 0,
  'failed', 0, 'dropped', 0, 'created_ms', now_ms, 'tells', tells)
if tells ~= '' then
  -- The id of the completion job contains the time of creation, so only this script can
  -- make it. The flag marks it as an id that a client chose: the queue remembers such
  -- an id after the job has ended.
  local told_id = string.format('batch-%s-%.0f', id, now_ms) .. id_end
  local told = with_id(entry, read_entry(entry), told_id)
  redis.call('HSET', record, 'completion', with_index(told), 'completion_delay_ms', delay_ms,
    'completion_expires_ms', expires_ms, 'completion_queue', queue)
end
redis.call('ZADD', batch_key(keys, 'ids'), 0, id)
redis.call('ZADD', batch_key(keys, 'running'), rank_of(priority, number), id)
return 1
