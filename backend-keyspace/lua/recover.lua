#!lua flags=allow-oom
-- Make jobs ready whose lease has expired; bury those on their last attempt.
--
-- KEYS[1...] the bookkeeping's, then the pattern's: keys.rs; then for each lease that was
--            seen to have ended:
-- KEYS[n]     STRING  its processing key
-- KEYS[n + 1] STRING  the item key of its job
--
-- Returns {made ready, buried}.
local keys = bind_keys()
local now_ms = server_ms()

-- Keys of another type fail here, before the first write.
check_keys(keys)
local counts = {requeued = 0, buried = 0}

-- What some other client renamed to a processing key goes back as it is. Another may
-- have set its item key meanwhile: then it gets another id, and neither is lost.
local function put_back(processing, item)
  redis.call('PERSIST', processing)
  if redis.call('RENAMENX', processing, item) == 0 then
    redis.call('RENAMENX', processing, ITEM .. free_id(item:sub(#ITEM + 1)))
  end
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
  local outcome = recover_job(keys, job, redis.call('GET', processing), now_ms)
  redis.call('UNLINK', processing)
  return outcome
end

for i = first_job_key(), #KEYS, 2 do
  -- It may have been extended or settled since it was seen.
  local lease_end = redis.call('ZSCORE', keys.leased, KEYS[i])
  if lease_end and tonumber(lease_end) <= now_ms then
    -- Another type of value is nobody's job.
    if redis.call('TYPE', KEYS[i]).ok == 'string' then
      local outcome = recover(KEYS[i], KEYS[i + 1])
      counts[outcome] = counts[outcome] + 1
    end
    redis.call('ZREM', keys.leased, KEYS[i])
  end
end
return {counts.requeued, counts.buried}
