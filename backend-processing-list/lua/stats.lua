#!lua flags=no-writes
-- Count the jobs in each state, all at one instant.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs; then
-- KEYS[...]  handed LIST, then processing lists LIST
-- ARGV[1] how many processing lists there are
-- ARGV[2...] for each of them its session, or empty for the shared list; then the other
--            members of `workers` and `retired`
--
-- Returns {ready, leased, overdue, age of the oldest ready job (ms) or -1, then the
-- bookkeeping's stats}, or false if another session exists: the jobs in its list would not
-- be counted.
--
-- Library: entry, pattern, moves
local keys = bind_keys()
local lists, handed = tonumber(ARGV[1]), list_of(1)
local now_ms = server_ms()
if not are_sessions_known(keys.workers, keys.retired, 2) then return false end

local leased, of_ended = 0, 0
for i = 1, lists do
  local count, session = redis.call('LLEN', list_of(i + 1)), ARGV[i + 1]
  leased = leased + count
  local end_ms = session ~= '' and (redis.call('ZSCORE', keys.workers, session) or 0)
  if end_ms and tonumber(end_ms) <= now_ms then of_ended = of_ended + count end
end

-- A job without a lease end is overdue if its session has ended. To know which list holds
-- such a job, all elements would have to be read, with their payloads. So the count is an
-- upper bound if living sessions have such jobs, too.
local without_end = math.max(0, leased - redis.call('ZCARD', keys.leased))
local overdue = redis.call('ZCOUNT', keys.leased, '-inf', now_ms)
  + math.min(without_end, of_ended)
local oldest_ms = due_age(keys, now_ms)
for _, list in ipairs({handed, keys.ready}) do
  oldest_ms = math.max(oldest_ms, ready_age(redis.call('LINDEX', list, -1), now_ms))
end
return {
  redis.call('LLEN', keys.ready) + redis.call('LLEN', handed), leased, overdue, oldest_ms,
  bookkeeping_stats(keys, now_ms),
}
