#!lua flags=allow-oom
-- Remove batches from the outbox whose completion jobs were pushed to another queue. A batch
-- that has another completion job stays: it is a later batch of the same name, and the caller
-- was late.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1...] for each batch: its id, and the id of the completion job that was pushed
--
-- Returns how many batches were removed.
--
-- Library: entry, pattern, moves
local keys = bind_keys()
local FIELDS = 2

-- If a key has another type, the script fails here, before its first write.
redis.call('SCARD', batch_key(keys, 'outbox'))
local removed = 0
for i = 1, #ARGV, FIELDS do
  local id, job_id = ARGV[i], ARGV[i + 1]
  local entry = redis.call('HGET', batch_key(keys, 'record', id), 'completion')
  local job = read_entry(entry or '')
  if job and job.id == job_id then
    removed = removed + redis.call('SREM', batch_key(keys, 'outbox'), id)
  end
end
return removed
