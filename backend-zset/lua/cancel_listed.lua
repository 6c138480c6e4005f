#!lua flags=allow-oom
-- End a ready job that is an element of a list.
--
-- KEYS[1] list    LIST  the list that has the element
-- KEYS[2] unique  HASH  unique key -> holder
-- KEYS[3] ids     ZSET  client-made id -> when it may be forgotten (ms)
-- KEYS[4] errors  HASH  id -> last error
-- KEYS[5] totals  HASH  name -> count
-- ARGV[1] the element
-- ARGV[2] how long an id is remembered after its job has ended (ms)
--
-- Returns 1 if the element was in the list, else 0.
--
-- Library: entry, side_records, followers
local list, totals = KEYS[1], KEYS[5]
local side_records =
  {unique = KEYS[2], ids = KEYS[3], errors = KEYS[4], totals = totals}
local element, window_ms = ARGV[1], tonumber(ARGV[2])
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_side_records(side_records)
check_leaders(side_records)
if redis.call('LREM', list, 1, element) == 0 then return 0 end
local job = read_entry(element)
if job then close_side_records(side_records, job, now_ms, window_ms, 'cancelled') end
add_to_total(totals, 'cancelled', 1)
settle_leaders(side_records, now_ms, window_ms, new_step(1))
return 1
