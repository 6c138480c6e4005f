#!lua flags=no-writes
-- Count the jobs in each state, all at one instant.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
--
-- Returns {ready, leased, overdue, -1, then the bookkeeping's stats}. The age of the
-- oldest ready job is not read.
--
-- Library: entry, moves
local keys = bind_keys()
local now_ms = server_ms()

return {
  redis.call('LLEN', keys.ready), redis.call('ZCARD', keys.leased),
  redis.call('ZCOUNT', keys.leased, '-inf', now_ms), -1, bookkeeping_stats(keys, now_ms),
}
