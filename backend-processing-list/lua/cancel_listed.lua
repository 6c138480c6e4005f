#!lua flags=allow-oom
-- End a job that is an element of a list, ready or leased.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs; then
-- KEYS[last] list  LIST  the list that holds the element
-- ARGV[1] the element
-- ARGV[2] the session that owns the list, or empty
-- ARGV[3] how long an id is remembered after its job has ended (ms)
-- ARGV[4] how long a cancelled lease is remembered after its end (ms)
--
-- Returns 1 if the element was there, else 0.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local list = KEYS[#KEYS]
local element, session = ARGV[1], ARGV[2]
local window_ms, remember_ms = tonumber(ARGV[3]), tonumber(ARGV[4])
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
redis.call('LLEN', list)
local name, entry_at = read_element(list, element)
local end_ms = name and (redis.call('ZSCORE', keys.leased, name)
  or redis.call('ZSCORE', keys.workers, session))
if redis.call('LREM', list, 1, element) == 0 then return 0 end
if name then
  local forget_at = math.max(now_ms, tonumber(end_ms or 0)) + remember_ms
  redis.call('ZADD', keys.cancelled, forget_at, name)
  redis.call('ZREM', keys.leased, name)
end
local job = read_entry(head_from(element, entry_at))
if job then close_side_records(keys, job, now_ms, window_ms, 'cancelled') end
add_to_total(keys.totals, 'cancelled', 1)
return 1
