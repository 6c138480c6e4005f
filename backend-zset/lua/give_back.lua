#!lua flags=allow-oom
-- Put leased jobs back to the front of the queue, as if they had not been claimed.
--
-- KEYS[1] leased  ZSET  lease -> end (ms)
-- KEYS[2] jobs    HASH  id -> entry
-- KEYS[3] ready   LIST  elements of normal priority, oldest on the right
-- KEYS[4] ranked  ZSET  id -> rank, of ready jobs of other priorities
-- KEYS[5] unique  HASH  unique key -> holder
-- KEYS[6] wake    LIST  at most one token, for the doorbells
-- ARGV[1...] for each job, the one to be claimed first at the start: lease, id
--
-- Returns the positions, from 0, of the leases that were lost.
local leased, jobs, unique = KEYS[1], KEYS[2], KEYS[5]
local keys = {jobs = jobs, ready = KEYS[3], ranked = KEYS[4], wake = KEYS[6]}

local lost = {}
for i = #ARGV - 1, 1, -2 do
  local lease, id = ARGV[i], ARGV[i + 1]
  if redis.call('ZSCORE', leased, lease) then
    local entry = redis.call('HGET', jobs, id)
    local job = read_entry(entry or '')
    if job then
      hold_until_expiry(unique, job)
      make_ready(keys, job, with_attempt(entry, math.max(0, job.attempt - 1)), 'front')
    end
    redis.call('ZREM', leased, lease)
  else
    lost[#lost + 1] = (i - 1) / 2
  end
end
return lost
