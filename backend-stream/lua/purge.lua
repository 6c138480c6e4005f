#!lua flags=allow-oom
-- Delete up to ARGV[1] batches, each with its pieces. The call that deletes the last
-- batch also deletes all jobs and all side records. A paused queue stays paused.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] how many batches at most
--
-- Returns {how many jobs were removed, 1 if there is more else 0}.
--
-- Library: side_records, pattern, moves
local keys = bind_keys()

local page = tonumber(ARGV[1])
local LISTS = {'ids', 'running', 'claimable'}

-- If a key has another type, the script fails here, before its first write.
local jobs = 0
for _, what in ipairs(LISTS) do redis.call('ZCARD', batch_key(keys, what)) end
local ids = redis.call('ZRANGE', batch_key(keys, 'ids'), 0, page - 1)
for _, id in ipairs(ids) do jobs = jobs + redis.call('XLEN', batch_key(keys, 'pieces', id)) end
local has_more = redis.call('ZCARD', batch_key(keys, 'ids')) > #ids
if not has_more then
  jobs = jobs + redis.call('ZCARD', keys.later) + redis.call('ZCARD', keys.dead)
  for _, level in ipairs(LEVELS) do jobs = jobs + redis.call('XLEN', keys.streams[level]) end
end

for _, id in ipairs(ids) do
  for _, what in ipairs({'record', 'pieces', 'live'}) do
    redis.call('UNLINK', batch_key(keys, what, id))
  end
  for _, what in ipairs(LISTS) do redis.call('ZREM', batch_key(keys, what), id) end
end
if has_more then return {jobs, 1} end
for _, what in ipairs({'ids', 'running', 'claimable', 'cancelling', 'outbox', 'told', 'ended'}) do
  redis.call('UNLINK', batch_key(keys, what))
end
for _, key in ipairs(KEYS) do
  if key ~= keys.paused then redis.call('UNLINK', key) end
end
purge_results(keys)
return {jobs, 0}
