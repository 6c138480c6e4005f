#!lua flags=allow-oom
-- End jobs that held neither a unique key nor an id of the client's, and that had
-- not failed before: there is nothing to clean up behind them.
--
-- KEYS[1] leased  ZSET  lease -> end (ms)
-- KEYS[2] held    HASH  lease -> entry
-- KEYS[3] totals  HASH  name -> count
-- ARGV[1] the total to add to
-- ARGV[2...] leases
--
-- Returns the positions, from 0, of the leases that were lost.
local leased, held, totals = KEYS[1], KEYS[2], KEYS[3]
local total = ARGV[1]

local ends = redis.call('ZMSCORE', leased, unpack(ARGV, 2))
local lost, leases, is_seen = {}, {}, {}
for i = 1, #ARGV - 1 do
  local lease = ARGV[i + 1]
  if ends[i] and not is_seen[lease] then
    is_seen[lease] = true
    leases[#leases + 1] = lease
  else
    lost[#lost + 1] = i - 1
  end
end
if #leases == 0 then return lost end
redis.call('HINCRBY', totals, total, #leases)
redis.call('HDEL', held, unpack(leases))
redis.call('ZREM', leased, unpack(leases))
return lost
