#!lua flags=allow-oom
-- Remove every job and all that the queue remembers. A paused queue stays paused.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
--
-- Returns how many jobs were removed.
--
-- Library: moves
local keys = bind_keys()

local jobs = redis.call('LLEN', keys.ready) + redis.call('ZCARD', keys.leased)
  + redis.call('ZCARD', keys.later) + redis.call('ZCARD', keys.dead)
for name, key in pairs(keys) do
  if name ~= 'paused' then redis.call('UNLINK', key) end
end
return jobs
