#!lua flags=allow-oom
-- Remove dead jobs.
--
-- KEYS[1] dead    ZSET  id -> since (ms)
-- KEYS[2] jobs    HASH  id -> entry, of scheduled, ranked and dead jobs
-- KEYS[3] errors  HASH  id -> a letter for why, and the last error
-- KEYS[4] ids     ZSET  client-made id -> when it may be forgotten (ms)
-- ARGV[1] how long ids are remembered after their job (ms)
-- ARGV[2...] ids
--
-- Returns how many were removed.
local dead, jobs, errors, ids = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local window_ms = tonumber(ARGV[1])
local now_ms = server_ms()

local removed = 0
for i = 2, #ARGV do
  local id = ARGV[i]
  if redis.call('ZSCORE', dead, id) then
    local job = read_entry(redis.call('HGET', jobs, id) or '')
    if job and job.is_indexed then redis.call('ZADD', ids, now_ms + window_ms, id) end
    redis.call('HDEL', errors, id)
    redis.call('HDEL', jobs, id)
    redis.call('ZREM', dead, id)
    removed = removed + 1
  end
end
return removed
