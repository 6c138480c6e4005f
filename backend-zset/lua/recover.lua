#!lua flags=allow-oom
-- Make a page of jobs ready whose lease has expired; bury those on their last attempt.
--
-- KEYS[1] leased  ZSET  lease -> end (ms)
-- KEYS[2] held    HASH  lease -> entry
-- KEYS[3] jobs    HASH  id -> entry, of scheduled, ranked and dead jobs
-- KEYS[4] ready   LIST  elements of normal priority, oldest on the right
-- KEYS[5] ranked  ZSET  id -> rank, of ready jobs of other priorities
-- KEYS[6] dead    ZSET  id -> since (ms)
-- KEYS[7] errors  HASH  id -> a letter for why, and the last error
-- KEYS[8] unique  HASH  unique key -> holder
-- KEYS[9] ids     ZSET  client-made id -> when it may be forgotten (ms)
-- KEYS[10] wake   LIST  at most one token, for the doorbells
-- ARGV[1] how many at most
--
-- Returns {made ready, buried, 1 if there is more else 0, ms until the next lease
-- ends or -1}.
local leased, held = KEYS[1], KEYS[2]
local keys = {
  jobs = KEYS[3], ready = KEYS[4], ranked = KEYS[5], dead = KEYS[6], errors = KEYS[7],
  unique = KEYS[8], ids = KEYS[9], wake = KEYS[10],
}
local page = tonumber(ARGV[1])
local now_ms = server_ms()

local requeued, buried = 0, 0

local function recover(job, entry)
  if job.attempt >= job.max_attempts then
    local last = (redis.call('HGET', keys.errors, job.id) or ' '):sub(2)
    bury(keys, job, entry, 'c' .. last, now_ms)
    buried = buried + 1
  else
    hold_until_expiry(keys.unique, job)
    make_ready(keys, job, entry, 'front')
    requeued = requeued + 1
  end
end

-- From the last to the first, over all pages, so that the one whose lease ended first
-- is at the very front in the end.
local overdue =
  redis.call('ZRANGE', leased, now_ms, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, page + 1)
for i = 1, math.min(#overdue, page) do
  local entry = redis.call('HGET', held, overdue[i])
  local job = read_entry(entry or '')
  if job then recover(job, entry) end
  redis.call('HDEL', held, overdue[i])
  redis.call('ZREM', leased, overdue[i])
end

local next_end = redis.call('ZRANGE', leased, 0, 0, 'WITHSCORES')[2]
local next_in_ms = next_end and math.max(0, math.ceil(next_end - now_ms)) or -1
return {requeued, buried, #overdue > page and 1 or 0, next_in_ms}
