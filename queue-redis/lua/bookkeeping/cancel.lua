#!lua flags=allow-oom
-- End a job that is scheduled or leased.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] id
-- ARGV[2] its lease, or empty if the caller does not know one
-- ARGV[3] how long an id is remembered after its job has ended (ms)
-- ARGV[4] how long a cancelled lease is remembered after its end (ms)
--
-- Returns the job's state before the call, 'scheduled' or 'leased'; or false if there
-- is no such job.
--
-- Library: entry, side_records, pattern, moves, followers
local keys = bind_keys()
local id, lease, window_ms, remember_ms =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local now_ms = server_ms()

-- Removes the job from the leased or the scheduled jobs. Returns its entry and its
-- state.
local function take_out()
  if lease ~= '' then
    local entry, end_ms = find_leased(keys, lease, 1)
    if not entry then return nil end
    local forget_at = math.max(now_ms, tonumber(end_ms or 0)) + remember_ms
    redis.call('ZADD', keys.cancelled, forget_at, lease)
    drop_leased(keys, lease, 1)
    return entry, 'leased'
  end
  if not redis.call('ZSCORE', keys.later, id) then return nil end
  local entry = redis.call('HGET', keys.jobs, id) or ''
  local job = is_held(entry) and read_entry(entry)
  if job then leave_leader(keys, job, entry) end
  redis.call('ZREM', keys.later, id)
  redis.call('HDEL', keys.jobs, id)
  return entry, 'scheduled'
end

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
check_leaders(keys)
if lease ~= '' then
  check_lease(keys, lease, 1)
else
  check_job(keys, read_entry(redis.call('HGET', keys.jobs, id) or ''))
end
local entry, place = take_out()
if not place then return false end
local job = read_entry(entry)
if job then close_side_records(keys, job, now_ms, window_ms, 'cancelled') end
redis.call('HDEL', keys.errors, id)
add_to_total(keys.totals, 'cancelled', 1)
settle_leaders(keys, now_ms, window_ms, new_step(1))
return place
