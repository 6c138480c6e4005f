#!lua flags=allow-oom
-- Remove all jobs, batches and side records. If there are more than ARGV[1] batches, remove
-- a page of them instead, each with its pieces and their side records. A paused queue stays
-- paused.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] how many batches at most; of pieces, a page has as many, or fewer large ones
--
-- Returns {how many jobs were removed, 1 if there is more else 0}.
--
-- Library: entry, side_records, pattern, batch/records, moves, followers
local keys = bind_keys()

local page = tonumber(ARGV[1])
local LISTS = {
  {'ids', 'ZREM'}, {'running', 'ZREM'}, {'claimable', 'ZREM'}, {'ended', 'ZREM'},
  {'outbox', 'SREM'}, {'cancelling', 'SREM'},
}
local jobs, step, now_ms = 0, new_step(page), server_ms()

-- The leases of all pieces, by their streams and their entries in them. Read once a call, and
-- only if it removes pieces of a batch that has leased ones.
local leases

local function lease_of(stream, sid)
  if not leases then
    leases = {}
    local all = redis.pcall('ZRANGE', keys.leased, 0, -1)
    for _, lease in ipairs(all) do
      local at, its_sid, _, batch = place_of(keys, lease)
      if batch then leases[at .. ' ' .. its_sid] = lease end
    end
  end
  return leases[stream .. ' ' .. sid]
end

-- Removes ready and leased pieces of a batch, as many as the step has room for. Returns
-- whether none is left. The batch counts them as dropped, and no longer as live. So if the
-- purge ends here, the batch goes on without them, and recovery cancels their followers (R30).
-- Their leases are removed with them: a piece that is added again under the same id must not
-- be ended by the holder of the removed one (R7).
local function remove_pieces(id)
  local stream, live = batch_key(keys, 'pieces', id), batch_key(keys, 'live', id)
  local has_leased = count_leased(stream) > 0
  while has_room(step) do
    local found = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
    if not found then return true end
    local entry, job = entry_of(found[1], found[2])
    local lease = has_leased and lease_of(stream, found[1])
    if lease then redis.call('ZREM', keys.leased, lease) end
    redis.call('XACK', stream, GROUP, found[1])
    redis.call('XDEL', stream, found[1])
    jobs = jobs + 1
    count_job(step, entry)
    if job then
      -- Another client may have stored something else in place of these records. The last
      -- step removes that.
      redis.pcall('SREM', live, job.id)
      redis.pcall('HINCRBY', batch_key(keys, 'record', id), 'dropped', 1)
      end_result(keys, job, now_ms, PURGED)
      redis.pcall('ZREM', keys.ids, job.id)
      redis.pcall('HDEL', keys.errors, job.id)
      if job.is_indexed then
        ended_leaders[#ended_leaders + 1] = {id = job.id, is_done = false}
      end
    end
  end
  return false
end

local function remove_records(id)
  for _, what in ipairs({'record', 'pieces', 'live'}) do
    redis.call('UNLINK', batch_key(keys, what, id))
  end
end

-- If a key has another type, the script fails here, before its first write.
for _, what in ipairs({'ids', 'running', 'claimable'}) do
  redis.call('ZCARD', batch_key(keys, what))
end
local ids = redis.call('ZRANGE', batch_key(keys, 'ids'), 0, page)
for _, id in ipairs(ids) do jobs = jobs + redis.call('XLEN', batch_key(keys, 'pieces', id)) end

if #ids > page then
  check_leaders(keys)
  jobs = 0
  for _, id in ipairs(ids) do
    if not remove_pieces(id) then break end
    remove_records(id)
    for _, list in ipairs(LISTS) do redis.pcall(list[2], batch_key(keys, list[1]), id) end
    count_job(step)
  end
  if has_followers then settle_ended(keys, now_ms, step) end
  return {jobs, 1}
end

jobs = jobs + redis.call('ZCARD', keys.later) + redis.call('ZCARD', keys.dead)
for _, level in ipairs(LEVELS) do jobs = jobs + redis.call('XLEN', keys.streams[level]) end
for _, id in ipairs(ids) do remove_records(id) end
for _, list in ipairs(LISTS) do redis.call('UNLINK', batch_key(keys, list[1])) end
redis.call('UNLINK', batch_key(keys, 'told'))
for _, key in ipairs(KEYS) do
  if key ~= keys.paused then redis.call('UNLINK', key) end
end
purge_results(keys)
return {jobs, 0}
