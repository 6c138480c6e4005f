#!lua flags=no-writes
-- Count the jobs in each state, all at one instant.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
--
-- Returns {ready, leased, overdue, age of the oldest ready job (ms) or -1, then the
-- bookkeeping's stats}.
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
-- Of each stream only the next returned entry and the next entry that was never delivered
-- are read. Pieces of batches are left out, because their batch may hold them back.
local oldest_ms = due_age(keys, now_ms)
local function look(found)
  if not found then return end
  oldest_ms = math.max(oldest_ms, ready_age(entry_of(found[1], found[2]), now_ms))
end

for _, level in ipairs(LEVELS) do
  local stream = keys.streams[level]
  local last = last_delivered(stream)
  look(redis.call('XRANGE', stream, last and '(' .. last or '-', '+', 'COUNT', 1)[1])
  local returned = last and redis.call('XPENDING', stream, GROUP, '-', '+', 1, READY)[1]
  if returned then look(redis.call('XRANGE', stream, returned[1], returned[1])[1]) end
end

return {
  -- Ready jobs are the entries without a lease. The difference is negative if another
  -- client has deleted entries of leased jobs.
  math.max(0, entries - leased),
  leased,
  redis.call('ZCOUNT', keys.leased, '-inf', now_ms),
  oldest_ms,
  bookkeeping_stats(keys, now_ms),
}
