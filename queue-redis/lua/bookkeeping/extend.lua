#!lua flags=allow-oom
-- Extend leases: each ends one lease length from now.
--
-- KEYS[1] leased     ZSET  the name of a lease -> its end (ms), or a value of at most
--                          0 if the lease has ended and the pattern keeps its entry
-- KEYS[2] cancelled  ZSET  lease of a cancelled job -> when it may be forgotten (ms)
-- ARGV[1] lease (ms)
-- ARGV[2...] leases
--
-- Returns {new end (ms), {positions, from 0, of the lost leases}, {positions of the
-- cancelled leases}}.
--
-- Library: entry
local leased, cancelled = KEYS[1], KEYS[2]
local end_ms = server_ms() + tonumber(ARGV[1])

local ends = redis.call('ZMSCORE', leased, unpack(ARGV, 2))
local held, lost, stopped = {}, {}, {}
for i, lease_end in ipairs(ends) do
  local lease = ARGV[i + 1]
  if lease_end and tonumber(lease_end) > 0 then
    held[#held + 1] = end_ms
    held[#held + 1] = lease
  elseif redis.call('ZSCORE', cancelled, lease) then
    stopped[#stopped + 1] = i - 1
  else
    lost[#lost + 1] = i - 1
  end
end
if #held > 0 then redis.call('ZADD', leased, 'XX', unpack(held)) end
return {math.floor(end_ms), lost, stopped}
