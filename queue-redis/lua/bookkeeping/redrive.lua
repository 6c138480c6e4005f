#!lua
-- Make dead jobs ready again, with no attempt counted. An expiry that has passed is
-- removed: the operator wants the job to run.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1...] ids
--
-- Returns {how many ids were handled, how many jobs were made ready, how many stay dead
-- because another job holds their unique key, how many because they cannot be read}. It
-- handles fewer ids when the entries are large.
--
-- Library: entry, side_records, moves, followers
local keys = bind_keys()
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
local entries, step, handled = {}, new_step(#ARGV), 0
while has_room(step) do
  handled = handled + 1
  local entry = redis.call('HGET', keys.jobs, ARGV[handled]) or ''
  local job = read_entry(entry)
  check_job(keys, job)
  if job and job.keep_ms then check_results(keys) end
  entries[handled] = entry
  count_job(step, entry)
end
local moved, duplicates, unreadable = 0, 0, 0

local function redrive(id, job, entry)
  local expires_at = job.expires_at or 0
  if expires_at > 0 and expires_at <= now_ms then
    entry, expires_at = with_expiry(entry, job.id, 0), 0
  end
  if job.unique_key then
    -- A worker of an earlier version may have left the key with the job that it buried.
    local holder = id_of_holder(redis.call('HGET', keys.unique, job.unique_key), now_ms)
    if holder and holder ~= id then
      duplicates = duplicates + 1
      return
    end
    redis.call('HSET', keys.unique, job.unique_key, unique_holder(id, expires_at))
  end
  if job.keep_ms then begin_results(keys, {id, UNFINISHED}) end
  make_kept_ready(keys, job, with_attempt(entry, 0), now_ms)
  settle_dropped(keys, step)
  redis.call('HDEL', keys.errors, id)
  redis.call('ZREM', keys.dead, id)
  moved = moved + 1
end

for i, entry in ipairs(entries) do
  local is_dead = redis.call('ZSCORE', keys.dead, ARGV[i])
  local job = is_dead and read_entry(entry)
  if job then
    redrive(ARGV[i], job, entry)
  elseif is_dead then
    unreadable = unreadable + 1
  end
end
return {handled, moved, duplicates, unreadable}
