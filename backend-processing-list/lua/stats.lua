#!lua flags=no-writes
-- Count the jobs in each state, all at one instant.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs; then
-- KEYS[...]  handed LIST, then processing lists LIST
-- ARGV[1...] for each processing list its session, or empty for the shared list
--
-- Returns {ready, leased, overdue, then the bookkeeping's stats}.
--
-- Library: entry, pattern, moves
local keys = bind_keys()
local handed = list_of(1)
local now_ms = server_ms()

-- Counts the overdue jobs in the list of a worker whose heartbeat has expired. Jobs
-- with a lease end of their own are counted elsewhere.
local function over_of(list)
  local over, first = 0, 0
  repeat
    local page = redis.call('LRANGE', list, first, first + WALK - 1)
    for _, element in ipairs(page) do
      local name = read_element(list, element)
      if not name or not redis.call('ZSCORE', keys.leased, name) then over = over + 1 end
    end
    first = first + WALK
  until #page < WALK
  return over
end

local leased, overdue = 0, redis.call('ZCOUNT', keys.leased, '-inf', now_ms)
for i, session in ipairs(ARGV) do
  local list = list_of(i + 1)
  leased = leased + redis.call('LLEN', list)
  local end_ms = session ~= '' and (redis.call('ZSCORE', keys.workers, session) or 0)
  if end_ms and tonumber(end_ms) <= now_ms then overdue = overdue + over_of(list) end
end
return {
  redis.call('LLEN', keys.ready) + redis.call('LLEN', handed), leased, overdue,
  bookkeeping_stats(keys, now_ms),
}
