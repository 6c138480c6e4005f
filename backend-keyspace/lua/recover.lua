#!lua flags=allow-oom
-- Make the jobs of expired leases ready. Bury those on their last attempt.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs; then for each lease
--            that had expired:
-- KEYS[n]     STRING  its processing key
-- KEYS[n + 1] STRING  the item key of its job
--
-- Returns {how many were made ready, how many were buried, 1 if leases are left because
-- the entries are large else 0}.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
local counts, step = {requeued = 0, buried = 0}, new_step((#KEYS - first_job_key() + 1) / 2)

-- A value that another client renamed to a processing key goes back unchanged. If a
-- client has set its item key meanwhile, the value gets another id, so neither job is
-- lost.
local function put_back(processing, item)
  redis.call('PERSIST', processing)
  redis.call('RENAMENX', processing, ITEM .. free_id(item:sub(#ITEM + 1)))
  notify(keys)
  return 'requeued'
end

local function recover(processing, item)
  local job = read_entry(redis.call('GETRANGE', processing, 0, LONGEST_HEAD))
  if not job then return put_back(processing, item) end
  if job.attempt < job.max_attempts and redis.call('EXISTS', item) == 0 then
    note_lost_lease(keys, job)
    hold_until_expiry(keys.unique, job)
    return put_back(processing, item)
  end
  local entry = redis.call('GET', processing)
  step.bytes = step.bytes - #entry
  local outcome = recover_job(keys, job, entry, now_ms)
  redis.call('UNLINK', processing)
  return outcome
end

for i = first_job_key(), #KEYS, 2 do
  if not has_room(step) then return {counts.requeued, counts.buried, 1} end
  -- The lease may have been extended or settled since `overdue` returned it.
  local lease_end = redis.call('ZSCORE', keys.leased, KEYS[i])
  if lease_end and tonumber(lease_end) <= now_ms then
    -- A value of another type is not a job.
    if redis.call('TYPE', KEYS[i]).ok == 'string' then
      local outcome = recover(KEYS[i], KEYS[i + 1])
      counts[outcome] = counts[outcome] + 1
    end
    redis.call('ZREM', keys.leased, KEYS[i])
  end
end
return {counts.requeued, counts.buried, 0}
