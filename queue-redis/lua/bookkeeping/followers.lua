-- Followers (R30): jobs that are held until another job, their leader, is done. A held job
-- is scheduled without a due time: its score in `later` is infinite, and its entry names
-- its leader. Needs moves.lua.

-- Returns the ids of the held followers of a job, in the order of their pushes, and as
-- `bytes` the size of their entries.
local function read_followers(keys, leader)
  local list = redis.call('HGET', results_key(keys, 'followers'), leader) or ''
  local followers, at = {bytes = 0}, 5
  if #list < at then return followers end
  followers.bytes = struct.unpack('>I4', list)
  while at <= #list do
    local id_bytes = list:byte(at)
    followers[#followers + 1] = list:sub(at + 1, at + id_bytes)
    at = at + 1 + id_bytes
  end
  return followers
end

-- Stores the ids of the held followers of a job, as `read_followers` returns them.
local function write_followers(keys, leader, followers)
  local key = results_key(keys, 'followers')
  if #followers == 0 then
    redis.call('HDEL', key, leader)
    return
  end
  local list = {struct.pack('>I4', math.max(0, followers.bytes))}
  for _, id in ipairs(followers) do list[#list + 1] = string.char(#id) .. id end
  redis.call('HSET', key, leader, table.concat(list))
end

-- Removes a held job, which ends, from the followers of its leader.
local function leave_leader(keys, job, entry)
  if redis.call('ZREM', results_key(keys, 'orphans'), job.id) == 1 then return end
  local followers = read_followers(keys, job.leader)
  local left = {bytes = followers.bytes}
  for _, id in ipairs(followers) do
    if id == job.id then
      left.bytes = left.bytes - #entry
    else
      left[#left + 1] = id
    end
  end
  if #left < #followers then write_followers(keys, job.leader, left) end
end

-- Counts a follower against the budget of the step that ends its leader. It is counted by
-- its bytes, so that the step still handles as many leaders as fit, and by at least so many
-- that a step settles about 1000 followers.
local function count_settled(step, entry)
  step.bytes = step.bytes - math.max(#(entry or ''), STEP_BYTES / 1000)
end

-- Makes a held job ready, because its leader is done, or begins its delay.
local function release_follower(keys, leader, id, now_ms, step)
  local entry = redis.call('HGET', keys.jobs, id)
  local job = read_entry(entry or '')
  count_settled(step, entry)
  -- Another client may have changed the entry.
  if not job or job.leader ~= leader then return end
  local delay_ms = job.delay_ms
  entry = without_leader(entry, job)
  job.flags, job.leader = job.flags - HELD, nil
  if delay_ms > 0 then
    redis.call('HSET', keys.jobs, id, entry)
    redis.call('ZADD', keys.later, due_score(keys, now_ms + delay_ms), id)
  else
    make_kept_ready(keys, job, entry, now_ms)
    redis.call('ZREM', keys.later, id)
  end
end

-- Whether this call has added to `orphans`: the held jobs whose leader has ended without
-- being done, and that are not cancelled yet.
local has_orphans = false

-- Releases the followers of a job that has ended, or makes them orphans.
local function settle_leader(keys, leader, now_ms, step)
  local followers = read_followers(keys, leader.id)
  if #followers == 0 then return end
  if leader.is_done then
    for _, id in ipairs(followers) do release_follower(keys, leader.id, id, now_ms, step) end
  else
    local orphans = {}
    for _, id in ipairs(followers) do
      orphans[#orphans + 1], orphans[#orphans + 2] = now_ms, id
      count_settled(step, false)
    end
    redis.call('ZADD', results_key(keys, 'orphans'), unpack(orphans))
    has_orphans = true
  end
  redis.call('HDEL', results_key(keys, 'followers'), leader.id)
end

local function settle_ended(keys, now_ms, step)
  while #ended_leaders > 0 do
    settle_leader(keys, table.remove(ended_leaders, 1), now_ms, step)
  end
end

-- Ends an orphan. Its id is checked, because another client may have removed the job.
local function cancel_orphan(keys, id, now_ms, window_ms, step)
  local entry = redis.call('HGET', keys.jobs, id)
  local job = read_entry(entry or '')
  count_job(step, entry)
  if job and job.leader and redis.call('ZREM', keys.later, id) == 1 then
    redis.call('HDEL', keys.jobs, id)
    close_side_records(keys, job, now_ms, window_ms, 'cancelled', job.leader)
    add_to_total(keys.totals, 'cancelled', 1)
  end
  redis.call('ZREM', results_key(keys, 'orphans'), id)
end

-- Cancels orphans, as many as the step has room for. The followers of each become orphans
-- in turn. Returns whether orphans are left.
local function cancel_orphans(keys, now_ms, window_ms, step)
  local orphans = results_key(keys, 'orphans')
  local id = redis.call('ZRANGE', orphans, 0, 0)[1]
  while id and has_room(step) do
    cancel_orphan(keys, id, now_ms, window_ms, step)
    if has_followers then settle_ended(keys, now_ms, step) end
    id = redis.call('ZRANGE', orphans, 0, 0)[1]
  end
  return id ~= nil
end

-- How many orphans a call cancels at most beside its own work. `recover` cancels the rest.
local cancelling = new_step(100)

-- Releases or cancels the followers of the jobs that this call has ended, and counts them
-- against its budget. The caller has called `check_leaders` before its first write.
local function settle_leaders(keys, now_ms, window_ms, step)
  if not has_followers then return end
  settle_ended(keys, now_ms, step)
  if has_orphans then has_orphans = cancel_orphans(keys, now_ms, window_ms, cancelling) end
end

-- Called by the scripts that end no job themselves, but in which a pattern may drop a piece
-- of a cancelled batch. A pattern with batches overrides this function.
local function settle_dropped()
end
