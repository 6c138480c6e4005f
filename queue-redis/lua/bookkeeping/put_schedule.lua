#!lua
-- Store a schedule, or replace its definition. Its last tick is then the present.
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
redis.call('HSET', schedules, name, struct.pack('>I6', server_ms()) .. definition)
return stored and 'replaced' or 'created'
