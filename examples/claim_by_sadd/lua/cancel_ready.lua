#!lua flags=allow-oom
-- End a ready job.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] id
-- ARGV[2] how long an id is remembered after its job has ended (ms)
--
-- Returns 1 if the job was ready, else 0.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local id, window_ms = ARGV[1], tonumber(ARGV[2])
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_ready(keys)
check_side_records(keys)
if redis.call('LREM', keys.ready, 1, ID_MARK .. id) == 0 then return 0 end
local job = read_entry(redis.call('HGET', keys.bodies, id) or '')
redis.call('HDEL', keys.bodies, id)
if job then close_side_records(keys, job, now_ms, window_ms, 'cancelled') end
add_to_total(keys.totals, 'cancelled', 1)
return 1
