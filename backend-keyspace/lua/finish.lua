#!lua flags=allow-oom
-- End jobs that held neither a unique key nor an id of the client's, and that had
-- not failed before: there is nothing to clean up behind them.
--
-- KEYS[1] leased  ZSET    processing key -> lease end (ms)
-- KEYS[2] totals  HASH    name -> count
-- KEYS[3...]      STRING  the processing keys, which are the leases
-- ARGV[1] the total to add to
--
-- Returns the positions, from 0, of the leases that were lost.
local leased, totals = KEYS[1], KEYS[2]
local total = ARGV[1]
local FIRST = 3

redis.call('HLEN', totals)
local lost, ended = {}, {}
for i = FIRST, #KEYS do
  if redis.call('ZREM', leased, KEYS[i]) == 1 then
    ended[#ended + 1] = KEYS[i]
  else
    lost[#lost + 1] = i - FIRST
  end
end
if #ended == 0 then return lost end
redis.call('UNLINK', unpack(ended))
redis.call('HINCRBY', totals, total, #ended)
return lost
