#!lua flags=allow-oom
-- Let leases run on from now.
--
-- KEYS[1] marks      ZSET  token of a lease -> its end (ms), or what became of it
-- KEYS[2] cancelled  ZSET  token of a cancelled job's lease -> when it may be
--                          forgotten (ms)
-- ARGV[1] lease (ms)
-- ARGV[2...] tokens
--
-- Returns {new end (ms), {positions from 0 of the lost}, {those of the cancelled}}.
local marks, cancelled = KEYS[1], KEYS[2]
local end_ms = server_ms() + tonumber(ARGV[1])

local ends = redis.call('ZMSCORE', marks, unpack(ARGV, 2))
local held, lost, stopped = {}, {}, {}
for i, lease_end in ipairs(ends) do
  local token = ARGV[i + 1]
  if lease_end and tonumber(lease_end) > 0 then
    held[#held + 1] = end_ms
    held[#held + 1] = token
  elseif redis.call('ZSCORE', cancelled, token) then
    stopped[#stopped + 1] = i - 1
  else
    lost[#lost + 1] = i - 1
  end
end
if #held > 0 then redis.call('ZADD', marks, 'XX', unpack(held)) end
return {math.floor(end_ms), lost, stopped}
