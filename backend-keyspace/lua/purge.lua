#!lua flags=allow-oom
-- Remove the ready and leased jobs of a page of the database, and up to as many scheduled
-- and dead jobs, each with its side records; and up to as many remembered ids of ended
-- jobs. The last pages forget the tokens of pushes from before the purge. A paused queue
-- stays paused.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] cursor of the page: '0' to begin, 'rest' if all pages are done and only
--         scheduled jobs, dead jobs, remembered ids and tokens are left
-- ARGV[2] how many keys a page has, about
-- ARGV[3] when the purge began (ms), as its first page returned it; empty on that page
-- ARGV[4] how long tokens are remembered (ms)
--
-- Returns {how many jobs were removed, cursor of the next page, or '0' after the last, when
-- the purge began (ms)}.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local cursor, count = ARGV[1], tonumber(ARGV[2])
local began_ms, window_ms = tonumber(ARGV[3]) or server_ms(), tonumber(ARGV[4])

local function is_job(name)
  return is_item(name)
    or name:sub(1, #PROCESSING) == PROCESSING and redis.call('TYPE', name).ok == 'string'
end

-- If a key has another type, the script fails here, before its first write.
check_ready(keys)
for _, key in ipairs({keys.later, keys.dead}) do redis.call('ZCARD', key) end

-- A value that another client has stored in place of side records holds none.
local RECORDS = {[keys.unique] = 'hash', [keys.ids] = 'zset', [keys.errors] = 'hash',
  [keys.jobs] = 'hash', [keys.calls] = 'zset', [keys.answers] = 'hash'}
for key, kind in pairs(RECORDS) do
  if redis.call('TYPE', key).ok ~= kind then redis.call('UNLINK', key) end
end

-- Only the records of removed jobs go, because a job may be pushed behind this page, and
-- stays if the purge is interrupted.
local function forget_job(job)
  free_unique(keys.unique, job)
  redis.call('ZREM', keys.ids, job.id)
  redis.call('HDEL', keys.errors, job.id)
end

local removed, step = 0, new_step(count)
local function remove_kept(set)
  while has_room(step) do
    local id = redis.call('ZRANGE', set, 0, 0)[1]
    if not id then return end
    local entry = redis.call('HGET', keys.jobs, id)
    forget_job(entry and read_entry(entry) or {id = id})
    redis.call('HDEL', keys.jobs, id)
    redis.call('ZREM', set, id)
    removed = removed + 1
    count_job(step, entry)
  end
end
remove_kept(keys.later)
remove_kept(keys.dead)

local next_cursor = '0'
if cursor ~= 'rest' then
  local page, jobs = redis.call('SCAN', cursor, 'COUNT', count), {}
  local has_records = redis.call('EXISTS', keys.unique, keys.ids, keys.errors) > 0
  for _, name in ipairs(page[2]) do
    if is_job(name) then
      jobs[#jobs + 1] = name
      local head = has_records and redis.call('GETRANGE', name, 0, LONGEST_HEAD - 1) or ''
      local id = is_item(name) and name:sub(#ITEM + 1) or id_of_lease(name)
      local job = job_with_id(head, id)
      if job then forget_job(job) end
    end
  end
  if #jobs > 0 then
    removed = removed + redis.call('UNLINK', unpack(jobs))
    redis.call('ZREM', keys.leased, unpack(jobs))
  end
  next_cursor = page[1]
end

local is_rest_left = redis.call('EXISTS', keys.later, keys.dead) > 0
if cursor == '0' then
  redis.call('UNLINK', keys.cancelled, keys.totals, keys.wake)
  -- One page was the whole queue, so no record is left that belongs to a job.
  if next_cursor == '0' and not is_rest_left then
    redis.call('UNLINK', keys.unique, keys.ids, keys.errors, keys.jobs)
    redis.call('UNLINK', keys.calls, keys.answers)
  end
end
-- Only the id of a job that exists has an infinite time here.
if #forget(keys.ids, '(inf', count) == count then is_rest_left = true end
-- A token goes only after the jobs of its push: if the purge is interrupted, a push that is
-- repeated must not store the jobs that are left a second time. A job that was pushed
-- meanwhile may stay, and its token stays with it.
if next_cursor == '0' and not is_rest_left then
  is_rest_left = forget_calls(keys, began_ms + window_ms, count) == count
end
return {removed, next_cursor == '0' and is_rest_left and 'rest' or next_cursor, began_ms}
