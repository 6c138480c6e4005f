#!lua flags=allow-oom
-- Schedule failed jobs for another attempt, or bury them.
--
-- KEYS[1] leased  ZSET  lease -> end (ms)
-- KEYS[2] jobs    HASH  id -> entry
-- KEYS[3] later   ZSET  id -> due (ms)
-- KEYS[4] dead    ZSET  id -> since (ms)
-- KEYS[5] errors  HASH  id -> a letter for why, and the last error
-- KEYS[6] unique  HASH  unique key -> holder
-- KEYS[7] wake    LIST  at most one token, for the doorbells
-- ARGV[1...] for each job: lease, id, delay (ms) or -1 to bury, letter for why it
--            is buried, error. The letters x (expired) and m (malformed) say that it
--            was never delivered.
--
-- Returns the positions, from 0, of the leases that were lost.
local leased, jobs, later, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[7]
local keys = {dead = KEYS[4], errors = KEYS[5], unique = KEYS[6]}
local FIELDS = 5
local now_ms = server_ms()

-- An attempt that was not made is not counted, and what the last one said is kept.
local function bury_undelivered(job, entry, why, text)
  redis.call('HSET', jobs, job.id, with_attempt(entry, job.attempt - 1))
  if text == '' then text = (redis.call('HGET', keys.errors, job.id) or ' '):sub(2) end
  bury(keys, job, why .. text, now_ms)
end

local function fail(job, delay_ms, why, text)
  local is_last = job.attempt >= job.max_attempts
  if delay_ms < 0 or is_last then
    bury(keys, job, (delay_ms < 0 and why or 'a') .. text, now_ms)
    return
  end
  redis.call('ZADD', later, now_ms + delay_ms, job.id)
  redis.call('HSET', keys.errors, job.id, 'e' .. text)
  hold_until_expiry(keys.unique, job)
  if redis.call('ZRANGE', later, 0, 0)[1] == job.id then ring(wake) end
end

local lost = {}
for i = 1, #ARGV, FIELDS do
  local lease, id = ARGV[i], ARGV[i + 1]
  if redis.call('ZSCORE', leased, lease) then
    local entry = redis.call('HGET', jobs, id)
    local job = read_entry(entry or '')
    local delay_ms, why, text = tonumber(ARGV[i + 2]), ARGV[i + 3], ARGV[i + 4]
    if job and (why == 'x' or why == 'm') then
      bury_undelivered(job, entry, why, text)
    elseif job then
      fail(job, delay_ms, why, text)
    end
    redis.call('ZREM', leased, lease)
  else
    lost[#lost + 1] = (i - 1) / FIELDS
  end
end
return lost
