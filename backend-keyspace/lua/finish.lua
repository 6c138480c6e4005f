#!lua flags=allow-oom
-- End jobs without side records: each had no unique key and no id that a client chose,
-- and had not failed before.
--
-- KEYS[1] leased  ZSET    processing key -> lease end (ms)
-- KEYS[2] totals  HASH    name -> count
-- KEYS[3...]      STRING  the processing keys, which are the leases
-- ARGV[1] name of the total to increase
--
-- Returns the positions, from 0, of the leases that were lost.
local leased, totals = KEYS[1], KEYS[2]
local total = ARGV[1]
local FIRST = 3

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
-- If another client has overwritten the totals with another type, HINCRBY fails. That
-- is ignored, because the jobs are already removed.
redis.pcall('HINCRBY', totals, total, #ended)
return lost
