-- Updates the record of the batch when one of its pieces is scheduled or dropped. Needs
-- relq-redis's moves.lua and followers.lua.
local schedule_any = schedule

-- No piece of a cancelled batch is scheduled for a retry (B7).
local function schedule(keys, job, entry, due_ms)
  if job.batch and state_of(keys, job.batch) == 'cancelling' then
    keys.outcome = 'cancelled'
    return
  end
  local id = job.id
  schedule_any(keys, job, entry, due_ms)
  if not job.batch then return end
  keys.outcome = 'later'
  -- `schedule` gives the job a new id if another scheduled job has its id: see `keep`.
  if job.id ~= id then
    redis.call('SREM', batch_key(keys, 'live', job.batch), id)
    redis.call('SADD', batch_key(keys, 'live', job.batch), job.id)
  end
end

-- A piece that is dropped with its batch may have followers (R30).
local function settle_dropped(keys, step)
  if #ended_leaders > 0 then settle_leaders(keys, server_ms(), MEMORY_MS, step) end
end
