#!lua flags=allow-oom
-- Extend leases: each ends one lease length from now. A lease stays in the set of the
-- earlier minute, where `recover` finds it and sees that it ends later.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] lease (ms)
-- ARGV[2...] leases
--
-- Returns {new end (ms), {positions, from 0, of the lost leases}, {positions of the
-- cancelled leases}}.
--
-- Library: entry, pattern, moves
local keys = bind_keys()
local end_ms = server_ms() + tonumber(ARGV[1])

-- If a key has another type, the script fails here, before its first write.
check_ready(keys)
redis.call('ZCARD', keys.cancelled)
local lost, stopped = {}, {}
for i = 2, #ARGV do
  local lease = ARGV[i]
  local old_end_ms = end_of(keys, lease)
  if old_end_ms then
    local minute = minute_of(end_ms)
    if minute < minute_of(old_end_ms) then look_in(keys, minute, lease) end
    redis.call('HSET', keys.ends, lease, string.format('%.0f', end_ms))
  elseif redis.call('ZSCORE', keys.cancelled, lease) then
    stopped[#stopped + 1] = i - 2
  else
    lost[#lost + 1] = i - 2
  end
end
return {end_ms, lost, stopped}
