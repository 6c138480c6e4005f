#!lua flags=no-writes
-- Count the jobs in each state, all at one instant. Reads the end of every lease.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
--
-- Returns {ready, leased, overdue, -1, then the bookkeeping's stats}. The age of the
-- oldest ready job is not read.
--
-- Library: entry, moves
local keys = bind_keys()
local now_ms = server_ms()

local overdue = 0
for _, end_ms in ipairs(redis.call('HVALS', keys.ends)) do
  if (tonumber(end_ms) or 0) <= now_ms then overdue = overdue + 1 end
end
return {
  redis.call('LLEN', keys.ready), redis.call('HLEN', keys.ends), overdue, -1,
  bookkeeping_stats(keys, now_ms),
}
