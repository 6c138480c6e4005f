#!lua flags=allow-oom
-- Seal a batch: it gets no more pieces. If all its pieces have ended, it completes.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] id
--
-- Returns the new status of the batch, or false if there is no such batch.
--
-- Library: entry, pattern, batch/records, moves
local keys = bind_keys()
local id = ARGV[1]
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
check_batch(keys, id)
if state_of(keys, id) == 'open' then
  redis.call('HSET', batch_key(keys, 'record', id), 'state', 'sealed', 'sealed_ms', now_ms)
  complete_if_over(keys, id, now_ms)
end
return status_of(keys, id)
