#!lua flags=allow-oom
-- End a ready job that is an element of a list.
--
-- KEYS[1] list    LIST  the one that it was seen in
-- KEYS[2] unique  HASH  unique key -> holder
-- KEYS[3] ids     ZSET  client-made id -> when it may be forgotten (ms)
-- KEYS[4] errors  HASH  id -> last error
-- KEYS[5] totals  HASH  name -> count
-- ARGV[1] the element
-- ARGV[2] how long ids are remembered after their job (ms)
--
-- Returns 1 if it was there, else 0.
local list, unique, ids, errors, totals = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local element, window_ms = ARGV[1], tonumber(ARGV[2])
local now_ms = server_ms()

redis.call('HLEN', totals)
if redis.call('LREM', list, 1, element) == 0 then return 0 end
local job = read_entry(element)
free_unique(unique, job)
if job.is_indexed then redis.call('ZADD', ids, now_ms + window_ms, job.id) end
redis.call('HDEL', errors, job.id)
redis.call('HINCRBY', totals, 'cancelled', 1)
return 1
