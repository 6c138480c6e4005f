#!lua flags=allow-oom
-- End jobs that held neither a unique key nor an id of the client's, and that had
-- not failed before: there is nothing to clean up behind them.
--
-- KEYS[1] leased  ZSET  lease -> end (ms)
-- KEYS[2] jobs    HASH  id -> entry
-- KEYS[3] totals  HASH  name -> count
-- ARGV[1] the total to add to
-- ARGV[2] how many jobs: n
-- ARGV[3...] n leases, then n ids in the same order
--
-- Returns the positions, from 0, of the leases that were lost.
local leased, jobs, totals = KEYS[1], KEYS[2], KEYS[3]
local total, count = ARGV[1], tonumber(ARGV[2])

local ends = redis.call('ZMSCORE', leased, unpack(ARGV, 3, 2 + count))
local lost, leases, ids, is_seen = {}, {}, {}, {}
for i = 1, count do
  local lease = ARGV[2 + i]
  if ends[i] and not is_seen[lease] then
    is_seen[lease] = true
    leases[#leases + 1], ids[#ids + 1] = lease, ARGV[2 + count + i]
  else
    lost[#lost + 1] = i - 1
  end
end
if #leases == 0 then return lost end
redis.call('HINCRBY', totals, total, #leases)
redis.call('HDEL', jobs, unpack(ids))
redis.call('ZREM', leased, unpack(leases))
return lost
