-- Updates the record of the batch when one of its pieces is scheduled or dropped. Needs
-- relq-redis's moves.lua and followers.lua.
local schedule_any, make_any_leased_ready = schedule, make_leased_ready

-- No piece of a cancelled batch runs again (B7). Returns whether the job is one.
local function is_cancelled(keys, job)
  if not job.batch or state_of(keys, job.batch) ~= 'cancelling' then return false end
  keys.outcome = 'cancelled'
  return true
end

local function schedule(keys, job, entry, due_ms)
  if is_cancelled(keys, job) then return end
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

local function make_leased_ready(keys, job, entry, now_ms)
  if is_cancelled(keys, job) then return end
  make_any_leased_ready(keys, job, entry, now_ms)
  -- The batch goes on with the piece.
  keys.outcome = 'later'
end

-- A piece that is dropped with its batch may have followers (R30).
local function settle_dropped(keys, step)
  if #ended_leaders > 0 then settle_leaders(keys, server_ms(), MEMORY_MS, step) end
end
