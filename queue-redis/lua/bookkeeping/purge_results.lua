#!lua flags=allow-oom
-- Remove the results of all jobs, and wake the clients that wait for them.
--
-- KEYS[1] results  HASH    id -> letter, value: see keys.rs
-- KEYS[2] kept     ZSET    id -> when its result is kept no longer (ms)
-- KEYS[3] ended    STREAM  ids of jobs that have ended
local results, kept, ended = KEYS[1], KEYS[2], KEYS[3]

if redis.call('UNLINK', results, kept) == 0 then return end
-- An entry without an id means all jobs.
redis.call('XADD', ended, 'MAXLEN', 1, '*', 'id', '')
redis.call('EXPIRE', ended, 60)
