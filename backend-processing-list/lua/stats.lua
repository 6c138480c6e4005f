#!lua flags=no-writes
-- Count the jobs in each state, all at one instant.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs; then
-- KEYS[...]  handed LIST, then processing lists LIST
-- ARGV[1] how many processing lists there are
-- ARGV[2...] for each of them its session, or empty for the shared list; then the other
--            members of `workers` and `retired`
--
-- Returns {ready, leased, overdue, then the bookkeeping's stats}, or false if another
-- session exists: the jobs in its list would not be counted.
--
-- Library: entry, pattern, moves
local keys = bind_keys()
local lists, handed = tonumber(ARGV[1]), list_of(1)
local now_ms = server_ms()
if not are_sessions_known(keys.workers, keys.retired, 2) then return false end

-- How many jobs of a session have a lease end of their own. The names of the leases are
-- read, and not the elements, which have the payloads.
local function own_ends_of(session)
  local own = 0
  for _, name in ipairs(redis.call('ZRANGE', keys.leased, 0, -1)) do
    if name:sub(1, #session + 1) == session .. '/' then own = own + 1 end
  end
  return own
end

-- Counts the overdue jobs in the list of a worker whose heartbeat has expired. Jobs
-- with a lease end of their own are counted elsewhere.
local function over_of(list, session)
  return math.max(0, redis.call('LLEN', list) - own_ends_of(session))
end

local leased, overdue = 0, redis.call('ZCOUNT', keys.leased, '-inf', now_ms)
for i = 1, lists do
  local list, session = list_of(i + 1), ARGV[i + 1]
  leased = leased + redis.call('LLEN', list)
  local end_ms = session ~= '' and (redis.call('ZSCORE', keys.workers, session) or 0)
  if end_ms and tonumber(end_ms) <= now_ms then overdue = overdue + over_of(list, session) end
end
return {
  redis.call('LLEN', keys.ready) + redis.call('LLEN', handed), leased, overdue,
  bookkeeping_stats(keys, now_ms),
}
