#!lua flags=no-writes
-- Count the jobs in each place, all at one instant.
--
-- KEYS[1...] the shelf's, then the pattern's, then
-- KEYS[...]  handed LIST, then processing lists LIST
-- ARGV[1...] for each processing list its session, or empty for the shared one
--
-- Returns {ready, leased, overdue, then the shelf's figures}.
local keys = bind_keys()
local handed = list_of(1)
local now_ms = server_ms()

local leased, overdue, is_over = 0, 0, {}
for i, session in ipairs(ARGV) do
  local count = redis.call('LLEN', list_of(i + 1))
  leased = leased + count
  local end_ms = session ~= '' and (redis.call('ZSCORE', keys.workers, session) or 0)
  if end_ms and tonumber(end_ms) <= now_ms then
    is_over[session] = true
    overdue = overdue + count
  end
end
for _, name in ipairs(redis.call('ZRANGE', keys.leased, '-inf', now_ms, 'BYSCORE')) do
  if not is_over[name:match('^[^/]*/[^/]*')] then overdue = overdue + 1 end
end
return {
  redis.call('LLEN', keys.ready) + redis.call('LLEN', handed), leased, overdue,
  shelf_figures(keys, now_ms),
}
