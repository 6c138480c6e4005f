#!lua flags=no-writes
-- Read what became of jobs.
--
-- KEYS[1] results  HASH  id -> letter, value: see keys.rs
-- KEYS[2] kept     ZSET  id -> when its result is kept no longer (ms)
-- ARGV[1...] ids
--
-- Returns the results, false for one that is not there or kept no longer. It returns fewer
-- results when they are large.
--
-- Library: entry
local results, kept = KEYS[1], KEYS[2]
local now_ms = server_ms()

local found, step = {}, new_step(#ARGV)
while has_room(step) do
  local id = ARGV[#found + 1]
  local removed_at = tonumber(redis.call('ZSCORE', kept, id) or math.huge)
  local result = removed_at > now_ms and redis.call('HGET', results, id)
  found[#found + 1] = result
  count_job(step, result)
end
return found
