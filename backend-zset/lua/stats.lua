#!lua flags=no-writes
-- Count the jobs in each place, all at one instant.
--
-- KEYS[1] ready   LIST    elements of normal priority
-- KEYS[2] handed  LIST    the same, moved by a doorbell
-- KEYS[3] ranked  ZSET    ready jobs of other priorities
-- KEYS[4] later   ZSET    id -> due (ms)
-- KEYS[5] leased  ZSET    lease -> end (ms)
-- KEYS[6] dead    ZSET    dead jobs
-- KEYS[7] totals  HASH    name -> count
-- KEYS[8] paused  STRING  there while claims are paused
--
-- Returns {ready, scheduled, leased, overdue, dead, finished, discarded, cancelled,
-- 1 if paused else 0, ms until the next delayed job is due or -1}.
local ready, handed, ranked, later = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local leased, dead, totals, paused = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
local now_ms = server_ms()

local ended = redis.call('HMGET', totals, 'finished', 'discarded', 'cancelled')
local due = redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')[2]
return {
  redis.call('LLEN', ready) + redis.call('LLEN', handed) + redis.call('ZCARD', ranked),
  redis.call('ZCARD', later),
  redis.call('ZCARD', leased),
  redis.call('ZCOUNT', leased, '-inf', now_ms),
  redis.call('ZCARD', dead),
  tonumber(ended[1] or 0), tonumber(ended[2] or 0), tonumber(ended[3] or 0),
  redis.call('EXISTS', paused),
  due and math.max(0, math.ceil(due - now_ms)) or -1,
}
