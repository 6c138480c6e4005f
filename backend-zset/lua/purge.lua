#!lua flags=allow-oom
-- Remove every job and all that the queue remembers. A paused queue stays paused.
--
-- KEYS[1] ready   LIST  elements of normal priority
-- KEYS[2] handed  LIST  elements that a notifier has moved here from ready
-- KEYS[3] ranked  ZSET  ready jobs of other priorities
-- KEYS[4] later   ZSET  scheduled jobs
-- KEYS[5] leased  ZSET  leases
-- KEYS[6] dead    ZSET  dead jobs
-- KEYS[7] errors  HASH  id -> why it died, and its last error
-- KEYS[8...]      the other keys of the bookkeeping except `paused`
--
-- Returns how many jobs were removed.
--
-- Library: side_records
local jobs = redis.call('LLEN', KEYS[1]) + redis.call('LLEN', KEYS[2])
for i = 3, 6 do jobs = jobs + redis.call('ZCARD', KEYS[i]) end
redis.call('UNLINK', unpack(KEYS))
purge_results({errors = KEYS[7]})
return jobs
