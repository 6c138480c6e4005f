#!lua flags=allow-oom
-- Remove every job and all that the queue remembers. A paused queue stays paused.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
--
-- Returns how many jobs were removed.
--
-- Library: pattern, moves
local keys = bind_keys()

local over = redis.call('ZCOUNT', keys.marks, OVER, OVER)
local jobs = redis.call('LLEN', keys.circle) - over + redis.call('ZCARD', keys.later)
  + redis.call('ZCARD', keys.dead)
for name, key in pairs(keys) do
  if name ~= 'paused' then redis.call('UNLINK', key) end
end
return jobs
