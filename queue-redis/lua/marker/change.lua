#!lua flags=allow-oom
-- change_marker
-- Write the owner of an idle queue, replacing any earlier owner.
--
-- KEYS[1] queue    Q itself
-- KEYS[2] leased   ZSET  lease -> end (ms)
-- KEYS[3] marks    ZSET  token of a lease -> its end (ms), or its state after the end
-- KEYS[4] workers  ZSET  session -> end of its heartbeat (ms)
-- KEYS[5] schedules  HASH  name -> schedule
-- KEYS[6] paused  STRING  exists while claims are paused
-- KEYS[7...6+n] STRING   the keys that name the owner: the marker first
-- KEYS[7+n...]           keys that a queue of this pattern never has
-- ARGV[1] the type of Q in this pattern, or '' for any
-- ARGV[2] the marker that the caller read, or '' for none
-- ARGV[3] 'owned' if that marker names another backend, 'resized' if at most the number
--         of parts changes, which is allowed while leases run, else 'own'
-- ARGV[4] 'split' if a queue of one part gets several, which have no schedules, 'changed'
--         if their number changes otherwise, else 'same'
-- ARGV[5...] the n values for the keys that name the owner
--
-- Returns {'set'}, or why nothing was written: {'changed'} if the marker is no longer
-- the one that the caller read; {'other', a key} if that key exists and the pattern
-- never has it; {'paused'} if other parts would not be; {'schedules', their number} if
-- they would be out of reach; {'leased', number of running leases and heartbeats, time
-- until the last of them ends (ms)}; {'ended', number of expired leases that wait for
-- recovery}.
local FIRST_VALUE, FIRST_CLAIM = 5, 7
local queue, leased, marks, workers, schedules, paused = unpack(KEYS, 1, 6)
local queue_type, seen, word, parts = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local count = #ARGV - FIRST_VALUE + 1

local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

if (redis.call('GET', KEYS[FIRST_CLAIM]) or '') ~= seen then return {'changed'} end
local found_type = redis.call('TYPE', queue).ok
if queue_type ~= '' and found_type ~= 'none' and found_type ~= queue_type then
  return {'other', queue}
end
for i = FIRST_CLAIM + count, #KEYS do
  if redis.call('EXISTS', KEYS[i]) == 1 then return {'other', KEYS[i]} end
end
-- A part that is added would deliver, and a part that is dropped would stay paused.
if word == 'resized' and parts ~= 'same' and redis.call('EXISTS', paused) == 1 then
  return {'paused'}
end
-- Counted in the step that writes, so that no schedule is stored in between.
local schedule_count = parts == 'split' and redis.call('HLEN', schedules) or 0
if schedule_count > 0 then return {'schedules', schedule_count} end
local running, last_ms, held = 0, 0, 0
for _, key in ipairs({leased, marks, workers}) do
  running = running + redis.call('ZCOUNT', key, '(' .. now_ms, '+inf')
  held = held + redis.call('ZCOUNT', key, '(0', '+inf')
  local last = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
  if last[2] then last_ms = math.max(last_ms, last[2] - now_ms) end
end
if running > 0 and word ~= 'resized' then return {'leased', running, math.ceil(last_ms)} end
if word == 'owned' and held > 0 then return {'ended', held} end
for i = 1, count do
  redis.call('SET', KEYS[FIRST_CLAIM + i - 1], ARGV[FIRST_VALUE + i - 1])
end
return {'set'}
