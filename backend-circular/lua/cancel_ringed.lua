#!lua flags=allow-oom
-- End a job that is in the ring, ready or leased.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] the job's element in the ring
-- ARGV[2] how long an id is remembered after its job has ended (ms)
-- ARGV[3] how long a cancelled lease is remembered after its end (ms)
--
-- Returns the job's state before the call, 'ready' or 'leased'; or false if there is no
-- such element.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local element, window_ms, remember_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
local token, entry_at = read_in_process(element)
local mark = mark_of(keys, token)
if mark == OVER then return false end
if mark and mark > 0 then
  redis.call('ZADD', keys.cancelled, math.max(now_ms, mark) + remember_ms, token)
end
if mark then
  drop_leased(keys, element)
elseif redis.call('LREM', keys.circle, 1, element) == 0 then
  return false
end
local job = read_entry(mark and head_from(element, entry_at) or element)
if job then close_side_records(keys, job, now_ms, window_ms, 'cancelled') end
add_to_total(keys.totals, 'cancelled', 1)
return mark and mark > 0 and 'leased' or 'ready'
