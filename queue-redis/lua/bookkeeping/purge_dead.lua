#!lua flags=allow-oom
-- Remove dead jobs.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] how long an id is remembered after its job has ended (ms)
-- ARGV[2...] ids
--
-- Returns {how many ids were handled, how many jobs were removed}. It handles fewer ids
-- when the entries are large.
--
-- Library: entry, side_records, moves, followers
local keys = bind_keys()
local window_ms = tonumber(ARGV[1])
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_bookkeeping(keys)
check_leaders(keys)

local removed, step, handled = 0, new_step(#ARGV - 1), 0
while has_room(step) do
  handled = handled + 1
  local id = ARGV[handled + 1]
  local entry = redis.call('ZSCORE', keys.dead, id) and redis.call('HGET', keys.jobs, id)
  count_job(step, entry)
  if redis.call('ZSCORE', keys.dead, id) then
    local job = read_entry(entry or '')
    if job then
      -- A worker of an earlier version may have left the key with the job that it buried.
      free_unique(keys.unique, job)
      remember_id(keys, job, now_ms, window_ms, 'purged')
      end_result(keys, job, now_ms, PURGED)
    end
    redis.call('HDEL', keys.errors, id)
    redis.call('HDEL', keys.jobs, id)
    redis.call('ZREM', keys.dead, id)
    settle_leaders(keys, now_ms, window_ms, step)
    removed = removed + 1
  end
end
return {handled, removed}
