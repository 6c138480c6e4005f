#!lua flags=allow-oom
-- A worker's heartbeat: extends its named jobs from now on. A job in its list that is
-- not named keeps its old lease end (R10). A job that a blocking move put there and no
-- claim has stamped goes back.
--
-- KEYS[1] ready      LIST  Q itself, oldest on the right
-- KEYS[2] leased     ZSET  lease -> end (ms), of those with an end of their own
-- KEYS[3] workers    ZSET  session -> end of its heartbeat (ms)
-- KEYS[4] cancelled  ZSET  lease of a cancelled job -> when it may be forgotten (ms)
-- KEYS[5] list       LIST  the session's own list
-- ARGV[1] session
-- ARGV[2] lease (ms)
-- ARGV[3...] names of leases
--
-- Returns {new end (ms), {positions of the lost from 0}, {positions of the cancelled}}.
--
-- Library: entry, pattern
local ready, leased, workers, cancelled, list = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local session = ARGV[1]
local end_ms = server_ms() + tonumber(ARGV[2])
local FIRST = 3

-- Keys of another type fail here, before the first write.
redis.call('LLEN', ready)
redis.call('ZCARD', leased)
redis.call('ZCARD', cancelled)
local old_end_ms = redis.call('ZSCORE', workers, session)

local is_named, is_held = {}, {}
for i = FIRST, #ARGV do is_named[ARGV[i]] = true end

local function look_at(element, not_seen)
  local name = read_element(list, element)
  if not name then
    table.insert(not_seen, 1, element)
  elseif is_named[name] then
    is_held[name] = true
    redis.call('ZREM', leased, name)
  else
    redis.call('ZADD', leased, 'NX', old_end_ms, name)
  end
end

if old_end_ms then
  local not_seen = {}
  walk(list, function(element) look_at(element, not_seen) end)
  put_back({ready = ready}, list, not_seen)
  redis.call('ZADD', workers, 'XX', end_ms, session)
end

local lost, stopped = {}, {}
for i = FIRST, #ARGV do
  if redis.call('ZSCORE', cancelled, ARGV[i]) then
    stopped[#stopped + 1] = i - FIRST
  elseif not is_held[ARGV[i]] then
    lost[#lost + 1] = i - FIRST
  end
end
return {math.floor(end_ms), lost, stopped}
