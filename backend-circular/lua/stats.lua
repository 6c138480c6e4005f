#!lua flags=no-writes
-- Count the jobs in each state, all at one instant.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
--
-- Returns {ready, leased, overdue, -1, then the bookkeeping's stats}. The age of the
-- oldest ready job is not known.
--
-- Library: entry, pattern, moves
local keys = bind_keys()
local now_ms = server_ms()

local leased = redis.call('ZCOUNT', keys.marks, '(0', '+inf')
local over = redis.call('ZCOUNT', keys.marks, OVER, OVER)
return {
  redis.call('LLEN', keys.circle) - leased - over,
  leased,
  redis.call('ZCOUNT', keys.marks, '(0', now_ms),
  -1,
  bookkeeping_stats(keys, now_ms),
}
