#!lua flags=allow-oom
-- Schedule failed jobs for another attempt, or bury them.
--
-- KEYS[1] leased  ZSET  lease -> end (ms)
-- KEYS[2] held    HASH  lease -> entry
-- KEYS[3] jobs    HASH  id -> entry, of scheduled, ranked and dead jobs
-- KEYS[4] later   ZSET  id -> due (ms)
-- KEYS[5] dead    ZSET  id -> since (ms)
-- KEYS[6] errors  HASH  id -> a letter for why, and the last error
-- KEYS[7] unique  HASH  unique key -> holder
-- KEYS[8] ids     ZSET  client-made id -> when it may be forgotten (ms)
-- KEYS[9] wake    LIST  at most one token, for the doorbells
-- ARGV[1...] for each job: lease, delay (ms) or -1 to bury, letter for why it is
--            buried, error. The letters x (expired) and m (malformed) say that it
--            was never delivered.
--
-- Returns the positions, from 0, of the leases that were lost.
local leased, held, later, wake = KEYS[1], KEYS[2], KEYS[4], KEYS[9]
local keys =
  {jobs = KEYS[3], dead = KEYS[5], errors = KEYS[6], unique = KEYS[7], ids = KEYS[8]}
local FIELDS = 4
local now_ms = server_ms()

-- An attempt that was not made is not counted, and what the last one said is kept.
local function bury_undelivered(job, entry, why, text)
  if text == '' then text = (redis.call('HGET', keys.errors, job.id) or ' '):sub(2) end
  bury(keys, job, with_attempt(entry, job.attempt - 1), why .. text, now_ms)
end

local function fail(job, entry, delay_ms, why, text)
  local is_last = job.attempt >= job.max_attempts
  if delay_ms < 0 or is_last then
    bury(keys, job, entry, (delay_ms < 0 and why or 'a') .. text, now_ms)
    return
  end
  keep(keys, job, entry)
  redis.call('ZADD', later, now_ms + delay_ms, job.id)
  redis.call('HSET', keys.errors, job.id, 'e' .. text)
  hold_until_expiry(keys.unique, job)
  if redis.call('ZRANGE', later, 0, 0)[1] == job.id then ring(wake) end
end

local lost = {}
for i = 1, #ARGV, FIELDS do
  local lease, delay_ms, why, text = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3]
  if redis.call('ZSCORE', leased, lease) then
    local entry = redis.call('HGET', held, lease)
    local job = read_entry(entry or '')
    if job and (why == 'x' or why == 'm') then
      bury_undelivered(job, entry, why, text)
    elseif job then
      fail(job, entry, delay_ms, why, text)
    end
    redis.call('HDEL', held, lease)
    redis.call('ZREM', leased, lease)
  else
    lost[#lost + 1] = (i - 1) / FIELDS
  end
end
return lost
