#!lua flags=allow-oom
-- End a ready job, which is an element of the list.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] the element
-- ARGV[2] how long an id is remembered after its job has ended (ms)
--
-- Returns 1 if the element was in the list, else 0.
--
-- Library: entry, side_records, moves
local keys = bind_keys()
local element, window_ms = ARGV[1], tonumber(ARGV[2])
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_side_records(keys)
if redis.call('LREM', keys.ready, 1, element) == 0 then return 0 end
local job = read_entry(element)
if job then close_side_records(keys, job, now_ms, window_ms, 'cancelled') end
add_to_total(keys.totals, 'cancelled', 1)
return 1
