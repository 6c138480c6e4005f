#!lua flags=allow-oom
-- Remove every job and all that the queue remembers; it stays paused if it is.
--
-- KEYS[1...] the shelf's, then the pattern's: keys.rs
--
-- Returns how many jobs there were.
local keys = bind_keys()

local jobs = redis.call('ZCARD', keys.later) + redis.call('ZCARD', keys.dead)
for _, level in ipairs(LEVELS) do jobs = jobs + redis.call('XLEN', keys.streams[level]) end
for _, key in ipairs(KEYS) do
  if key ~= keys.paused then redis.call('UNLINK', key) end
end
return jobs
