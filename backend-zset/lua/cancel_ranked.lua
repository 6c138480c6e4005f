#!lua flags=allow-oom
-- End a ready job whose priority is not normal.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] id
-- ARGV[2] how long an id is remembered after its job has ended (ms)
--
-- Returns 1 if the job was ready, else 0.
--
-- Library: entry, side_records, moves, followers
local keys = bind_keys()
local id, window_ms = ARGV[1], tonumber(ARGV[2])
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
redis.call('HLEN', keys.jobs)
check_side_records(keys)
check_leaders(keys)
if redis.call('ZREM', keys.ranked, id) == 0 then return 0 end
local job = read_entry(redis.call('HGET', keys.jobs, id) or '')
redis.call('HDEL', keys.jobs, id)
if job then close_side_records(keys, job, now_ms, window_ms, 'cancelled') end
add_to_total(keys.totals, 'cancelled', 1)
settle_leaders(keys, now_ms, window_ms, new_step(1))
return 1
