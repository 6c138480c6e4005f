#!lua flags=allow-oom
-- A worker's heartbeat: extends the named leases. A lease that is not named keeps its
-- end (R10). A job that a blocking move put into the worker's list and that no claim
-- has stamped goes back to the ready list. The worker's list is read only if it has
-- more elements than there are named leases, and then only at its two ends.
--
-- KEYS[1] ready      LIST  Q itself, oldest on the right
-- KEYS[2] leased     ZSET  lease -> end (ms)
-- KEYS[3] workers    ZSET  session -> end of its last lease (ms)
-- KEYS[4] cancelled  ZSET  lease of a cancelled job -> when it may be forgotten (ms)
-- KEYS[5] list       LIST  the session's own list
-- ARGV[1] session
-- ARGV[2] lease (ms)
-- ARGV[3...] names of leases
--
-- Returns {new end (ms), {positions, from 0, of the lost leases}, {positions of the
-- cancelled leases}}.
--
-- Library: entry, pattern
local ready, leased, workers, cancelled, list = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local session = ARGV[1]
local end_ms = server_ms() + tonumber(ARGV[2])
local FIRST = 3

-- If a key has another type, the script fails here, before its first write.
redis.call('LLEN', ready)
redis.call('ZCARD', leased)
redis.call('ZCARD', cancelled)
local is_registered, count = redis.call('ZSCORE', workers, session), redis.call('LLEN', list)

local ends = #ARGV < FIRST and {} or redis.call('ZMSCORE', leased, unpack(ARGV, FIRST))
local held, lost, stopped = {}, {}, {}
for i, lease_end in ipairs(ends) do
  local name = ARGV[FIRST + i - 1]
  if lease_end then
    held[#held + 1] = end_ms
    held[#held + 1] = name
  elseif redis.call('ZSCORE', cancelled, name) then
    stopped[#stopped + 1] = i - 1
  else
    lost[#lost + 1] = i - 1
  end
end
if #held > 0 then redis.call('ZADD', leased, 'XX', unpack(held)) end

if is_registered then
  redis.call('ZADD', workers, 'XX', 'GT', end_ms, session)
  if count > #held / 2 then
    put_back({ready = ready}, list, unseen(list))
    put_back_oldest({ready = ready}, list)
  end
end
return {math.floor(end_ms), lost, stopped}
