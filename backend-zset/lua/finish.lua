#!lua flags=allow-oom
-- End jobs without side records: they hold no unique key and no client-made id, and
-- they have not failed before.
--
-- KEYS[1] leased  ZSET  lease -> end (ms)
-- KEYS[2] held    HASH  lease -> entry
-- KEYS[3] totals  HASH  name -> count
-- ARGV[1] name of the total to increase
-- ARGV[2...] leases
--
-- Returns the positions, from 0, of the leases that were lost.
--
-- Library: leasing
local leased, held, totals = unpack(KEYS)

-- If a key has another type, the script fails here, before its first write.
redis.call('ZCARD', leased)
return finish(leased, held, totals, ARGV[1], 2)
