#!lua flags=allow-oom
-- Make a page of scheduled jobs ready whose time has come.
--
-- KEYS[1] later   ZSET  id -> due (ms)
-- KEYS[2] jobs    HASH  id -> entry, of scheduled, ranked and dead jobs
-- KEYS[3] ready   LIST  elements of normal priority, newest on the left
-- KEYS[4] ranked  ZSET  id -> rank, of ready jobs of other priorities
-- KEYS[5] wake    LIST  at most one token, for the doorbells
-- ARGV[1] how many at most
--
-- Returns {made ready, 1 if there is more else 0, ms until the next is due or -1}.
local later, jobs, ready, ranked, wake = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local page = tonumber(ARGV[1])
local now_ms = server_ms()

local due = redis.call('ZRANGE', later, '-inf', now_ms, 'BYSCORE', 'LIMIT', 0, page + 1)
for i = 1, math.min(#due, page) do
  local entry = redis.call('HGET', jobs, due[i])
  local job = read_entry(entry or '')
  if job and job.priority == NORMAL then
    redis.call('LPUSH', ready, entry)
    redis.call('HDEL', jobs, due[i])
  elseif job then
    set_rank(ranked, job, 'back')
    ring(wake)
  end
  redis.call('ZREM', later, due[i])
end

local next_due = redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')[2]
local next_in_ms = next_due and math.max(0, math.ceil(next_due - now_ms)) or -1
return {math.min(#due, page), #due > page and 1 or 0, next_in_ms}
