#!lua
-- Store a schedule, or replace its definition. Its last tick is then the present, or the
-- old last tick if that is later.
--
-- KEYS[1] schedules  HASH  name -> last tick (ms, 6 bytes), definition
-- ARGV[1] the name of the schedule
-- ARGV[2] the definition
--
-- Returns 'created', 'replaced', or 'unchanged' if it has this definition already.
--
-- Library: entry
local schedules, name, definition = KEYS[1], ARGV[1], ARGV[2]
local TICK_BYTES = 6

local stored = redis.call('HGET', schedules, name)
if stored and stored:sub(TICK_BYTES + 1) == definition then return 'unchanged' end
local last_ms = server_ms()
-- After the clock was set back, ticks later than now were pushed already.
if stored and #stored >= TICK_BYTES then
  last_ms = math.max(last_ms, (struct.unpack('>I6', stored)))
end
redis.call('HSET', schedules, name, struct.pack('>I6', last_ms) .. definition)
return stored and 'replaced' or 'created'
