#!lua flags=allow-oom
-- End a job that is in the ring, ready or leased.
--
-- KEYS[1...] the bookkeeping's, then the pattern's: keys.rs
-- ARGV[1] its element
-- ARGV[2] how long ids are remembered after their job (ms)
-- ARGV[3] how long a cancelled lease is remembered after its end (ms)
--
-- Returns 'ready' or 'leased' (its state before), or false if there is no such element.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local element, window_ms, remember_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now_ms = server_ms()

-- Keys of another type fail here, before the first write.
check_keys(keys)
local token, entry = read_in_process(element)
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
local job = read_entry(mark and entry or element)
if job then close_side_records(keys, job, now_ms, window_ms) end
add_to_total(keys.totals, 'cancelled', 1)
return mark and mark > 0 and 'leased' or 'ready'
