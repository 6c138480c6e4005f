#!lua flags=no-writes
-- Count the jobs in each state, all at one instant.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
--
-- Returns {ready, leased, overdue, then the bookkeeping's stats}.
--
-- Library: entry, pattern, moves
local keys = bind_keys()
local now_ms = server_ms()

local entries, leased = 0, redis.call('ZCARD', keys.leased)
for _, level in ipairs(LEVELS) do
  entries = entries + redis.call('XLEN', keys.streams[level])
end
for _, id in ipairs(redis.call('ZRANGE', batch_key(keys, 'running'), 0, -1)) do
  entries = entries + redis.call('XLEN', batch_key(keys, 'pieces', id))
end
return {
  -- Ready jobs are the entries without a lease. The difference is negative if another
  -- client has deleted entries of leased jobs.
  math.max(0, entries - leased),
  leased,
  redis.call('ZCOUNT', keys.leased, '-inf', now_ms),
  bookkeeping_stats(keys, now_ms),
}
