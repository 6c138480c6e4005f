#!lua
-- Make dead jobs ready again, with no attempt counted and no expiry.
--
-- KEYS[1] dead    ZSET  id -> since (ms)
-- KEYS[2] jobs    HASH  id -> entry, of scheduled, ranked and dead jobs
-- KEYS[3] ready   LIST  elements of normal priority, newest on the left
-- KEYS[4] ranked  ZSET  id -> rank, of ready jobs of other priorities
-- KEYS[5] errors  HASH  id -> a letter for why, and the last error
-- KEYS[6] unique  HASH  unique key -> holder
-- KEYS[7] wake    LIST  at most one token, for the doorbells
-- ARGV[1...] ids
--
-- Returns {made ready, still dead because another job holds their unique key}.
local dead, jobs, ready, ranked, errors, unique, wake =
  KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local now_ms = server_ms()

local moved, duplicates = 0, 0

local function redrive(id, job, entry)
  if job.unique_key then
    if holder_of(unique, job.unique_key, now_ms) then
      duplicates = duplicates + 1
      return
    end
    redis.call('HSET', unique, job.unique_key, unique_holder(id, 0))
  end
  if job.expires_at then entry = with_expiry(entry, job, 0) end
  entry = with_attempt(entry, 0)
  if job.priority == NORMAL then
    redis.call('LPUSH', ready, entry)
    redis.call('HDEL', jobs, id)
  else
    redis.call('HSET', jobs, id, entry)
    set_rank(ranked, job, 'back')
    ring(wake)
  end
  redis.call('HDEL', errors, id)
  redis.call('ZREM', dead, id)
  moved = moved + 1
end

for _, id in ipairs(ARGV) do
  local entry = redis.call('ZSCORE', dead, id) and redis.call('HGET', jobs, id)
  local job = entry and read_entry(entry)
  if job then redrive(id, job, entry) end
end
return {moved, duplicates}
