#!lua flags=allow-oom
-- Remove every job, every batch and all side records. A paused queue stays paused.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
--
-- Returns how many jobs were removed.
--
-- Library: pattern, moves
local keys = bind_keys()

local jobs = redis.call('ZCARD', keys.later) + redis.call('ZCARD', keys.dead)
for _, level in ipairs(LEVELS) do jobs = jobs + redis.call('XLEN', keys.streams[level]) end
local ids = redis.call('ZRANGE', batch_key(keys, 'ids'), 0, -1)
for _, id in ipairs(ids) do jobs = jobs + redis.call('XLEN', batch_key(keys, 'pieces', id)) end
for _, id in ipairs(ids) do
  for _, what in ipairs({'record', 'pieces', 'live'}) do
    redis.call('UNLINK', batch_key(keys, what, id))
  end
end
for _, what in ipairs({'ids', 'running', 'claimable', 'cancelling', 'outbox', 'told', 'ended'}) do
  redis.call('UNLINK', batch_key(keys, what))
end
for _, key in ipairs(KEYS) do
  if key ~= keys.paused then redis.call('UNLINK', key) end
end
return jobs
