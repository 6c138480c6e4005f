#!lua flags=no-writes
-- Count the jobs in each state, all at one instant.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
--
-- Returns {unclaimed keys, leased, overdue, -1, then the bookkeeping's stats}. The -1 is
-- in place of the age of the oldest ready job, which is not known.
--
-- Library: entry, pattern, moves
local keys = bind_keys()
local now_ms = server_ms()

return {
  unclaimed(keys),
  redis.call('ZCARD', keys.leased),
  redis.call('ZCOUNT', keys.leased, '-inf', now_ms),
  -1,
  bookkeeping_stats(keys, now_ms),
}
