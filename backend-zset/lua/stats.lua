#!lua flags=no-writes
-- Count the jobs in each state, all at one instant.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs; then
-- KEYS[last] handed  LIST  elements that a notifier has moved here from the ready list
--
-- Returns {ready, leased, overdue, then the bookkeeping's stats}.
--
-- Library: entry, moves
local keys = bind_keys()
local handed = KEYS[#KEYS]
local now_ms = server_ms()

return {
  redis.call('LLEN', keys.ready) + redis.call('LLEN', handed)
    + redis.call('ZCARD', keys.ranked),
  redis.call('ZCARD', keys.leased),
  redis.call('ZCOUNT', keys.leased, '-inf', now_ms),
  bookkeeping_stats(keys, now_ms),
}
