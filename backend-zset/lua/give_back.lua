#!lua flags=allow-oom
-- Put leased jobs back to the front of the queue, as if they had not been claimed.
--
-- KEYS[1] leased  ZSET  lease -> end (ms)
-- KEYS[2] held    HASH  lease -> entry
-- KEYS[3] jobs    HASH  id -> entry, of scheduled, ranked and dead jobs
-- KEYS[4] ready   LIST  elements of normal priority, oldest on the right
-- KEYS[5] ranked  ZSET  id -> rank, of ready jobs of other priorities
-- KEYS[6] unique  HASH  unique key -> holder
-- KEYS[7] ids     ZSET  client-made id -> when it may be forgotten (ms)
-- KEYS[8] wake    LIST  at most one token, for the doorbells
-- ARGV[1...] leases, the one whose job is to be claimed first at the start
--
-- Returns the positions, from 0, of the leases that were lost.
local leased, held = KEYS[1], KEYS[2]
local keys = {
  jobs = KEYS[3], ready = KEYS[4], ranked = KEYS[5], unique = KEYS[6], ids = KEYS[7],
  wake = KEYS[8],
}

local lost = {}
for i = #ARGV, 1, -1 do
  local lease = ARGV[i]
  if redis.call('ZSCORE', leased, lease) then
    local entry = redis.call('HGET', held, lease)
    local job = read_entry(entry or '')
    if job then
      hold_until_expiry(keys.unique, job)
      make_ready(keys, job, with_attempt(entry, math.max(0, job.attempt - 1)), 'front')
    end
    redis.call('HDEL', held, lease)
    redis.call('ZREM', leased, lease)
  else
    lost[#lost + 1] = i - 1
  end
end
return lost
