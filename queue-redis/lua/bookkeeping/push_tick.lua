#!lua
-- Store the job of a schedule's tick, and record the tick, if no scheduler has done so.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs; then
-- KEYS[last] schedules  HASH  name -> last tick (ms, 6 bytes), definition
-- ARGV[1] the name of the schedule
-- ARGV[2] the definition by which the caller computed the tick
-- ARGV[3] the tick (ms)
-- ARGV[4...] the fields of the job: see pushing.lua
--
-- Returns {'pushed', the duplicates as `push_jobs` returns them}, {'not later'},
-- {'not due', ms until the tick}, or {'changed'} if the schedule has another definition
-- or does not exist. Only after 'pushed' anything was written.
--
-- Library: entry, moves, pushing
local keys, schedules = bind_keys(), KEYS[#KEYS]
local name, definition, tick_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local FIRST, TICK_BYTES = 4, 6
local now_ms = server_ms()

local stored = redis.call('HGET', schedules, name)
if not stored or stored:sub(TICK_BYTES + 1) ~= definition then return {'changed'} end
if tick_ms <= struct.unpack('>I6', stored) then return {'not later'} end
if tick_ms > now_ms then return {'not due', tick_ms - now_ms} end

-- If a key has another type, the script fails here, before its first write.
check_push(keys)
local duplicates = push_jobs(keys, FIRST, now_ms)
redis.call('HSET', schedules, name, struct.pack('>I6', tick_ms) .. definition)
return {'pushed', duplicates}
