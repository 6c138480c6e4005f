#!lua flags=no-writes
-- Count the jobs in each place, all at one instant.
--
-- KEYS[1...] the shelf's, then the pattern's, then
-- KEYS[last] handed  LIST  elements moved by a doorbell
--
-- Returns {ready, leased, overdue, then the shelf's figures}.
local keys = bind_keys()
local handed = KEYS[#KEYS]
local now_ms = server_ms()

return {
  redis.call('LLEN', keys.ready) + redis.call('LLEN', handed)
    + redis.call('ZCARD', keys.ranked),
  redis.call('ZCARD', keys.leased),
  redis.call('ZCOUNT', keys.leased, '-inf', now_ms),
  shelf_figures(keys, now_ms),
}
