#!lua flags=allow-oom
-- Resume claims of a paused queue.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
--
-- Returns 1 if the queue was paused, else 0.
--
-- Library: side_records, moves
local keys = bind_keys()

-- If the key has another type, the script fails here, before its first write.
redis.call('LLEN', keys.wake)
local was_paused = redis.call('DEL', keys.paused)
notify(keys)
return was_paused
