#!lua flags=allow-oom
-- Remove every job and all side records. A paused queue stays paused.
--
-- KEYS[1] workers  ZSET  sessions
-- KEYS[2] retired  ZSET  sessions that ended
-- KEYS[3] later    ZSET  scheduled jobs
-- KEYS[4] dead     ZSET  dead jobs
-- KEYS[5...]       lists of ready and leased jobs, then all other keys of the queue
--                  except `paused`
-- ARGV[1] how many of these keys are lists
-- ARGV[2...] the members of `workers` and `retired`; the lists of the sessions among
--            them are among these keys
--
-- Returns how many jobs were removed, or false if another member exists: then nothing
-- was removed.
--
-- Library: pattern
local workers, retired, later, dead = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local FIRST_LIST, lists = 5, tonumber(ARGV[1])

if not are_sessions_known(workers, retired, 2) then return false end
local jobs = redis.call('ZCARD', later) + redis.call('ZCARD', dead)
for i = FIRST_LIST, FIRST_LIST + lists - 1 do jobs = jobs + redis.call('LLEN', KEYS[i]) end
for _, key in ipairs(KEYS) do redis.call('UNLINK', key) end
return jobs
