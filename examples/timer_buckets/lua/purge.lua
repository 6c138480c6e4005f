#!lua flags=allow-oom
-- Remove every job and all that the queue remembers. A paused queue stays paused.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
--
-- Returns how many jobs were removed.
--
-- Library: pattern, moves
local keys = bind_keys()

local jobs = redis.call('LLEN', keys.ready) + redis.call('HLEN', keys.ends)
  + redis.call('ZCARD', keys.later) + redis.call('ZCARD', keys.dead)
for _, minute in ipairs(redis.call('ZRANGE', keys.minutes, 0, -1)) do
  redis.call('UNLINK', set_of(keys, minute))
end
for name, key in pairs(keys) do
  if name ~= 'paused' then redis.call('UNLINK', key) end
end
return jobs
