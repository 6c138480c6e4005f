#!lua flags=allow-oom
-- End jobs without side records: they hold no unique key and no client-made id, and
-- they have not failed before.
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

local count = #ARGV - 1

-- Keys of another type fail here, before the first write.
redis.call('ZCARD', leased)
local lost = {}
-- If as many entries were deleted as there are leases, no lease is lost and all leases
-- can be removed at once. Otherwise each lease is checked separately.
if redis.call('HDEL', held, unpack(ARGV, 2)) == count then
  redis.call('ZREM', leased, unpack(ARGV, 2))
else
  for i = 2, #ARGV do
    if redis.call('ZREM', leased, ARGV[i]) == 0 then lost[#lost + 1] = i - 2 end
  end
end
-- See `add_to_total`: if another client has overwritten the totals, they stay so.
if #lost < count then redis.pcall('HINCRBY', totals, total, count - #lost) end
return lost
