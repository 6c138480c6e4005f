#!lua flags=allow-oom
-- End jobs without side records, and claim.
--
-- KEYS[1] to KEYS[10] as in claim.lua
-- KEYS[11] totals     HASH  name -> count
-- ARGV[1] to ARGV[5]  as in claim.lua
-- ARGV[6] the total to add the ended jobs to
-- ARGV[7...] leases of the ended jobs
--
-- Returns the values that claim.lua returns, then the positions, from 0, of the leases
-- that were lost, then the number of lost leases.
--
-- Library: claiming, leasing
local leased, held, totals = KEYS[5], KEYS[6], KEYS[11]
local FIRST = 7

local reply = claim()
if reply.err then return reply end
-- If the key has another type, the script fails here, before its first write. A claim
-- that leased jobs has written the key already.
if #reply == 3 then redis.call('ZCARD', leased) end
local lost = finish(leased, held, totals, ARGV[6], FIRST)
for i = 1, #lost do reply[#reply + 1] = lost[i] end
reply[#reply + 1] = #lost
return reply
