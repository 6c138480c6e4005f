#!lua flags=no-writes
-- Count the jobs in each place, all at one instant.
--
-- KEYS[1...] the bookkeeping's, then the pattern's: keys.rs
--
-- Returns {unclaimed keys, leased, overdue, then the bookkeeping's figures}.
local keys = bind_keys()
local now_ms = server_ms()

return {
  unclaimed(keys),
  redis.call('ZCARD', keys.leased),
  redis.call('ZCOUNT', keys.leased, '-inf', now_ms),
  bookkeeping_stats(keys, now_ms),
}
