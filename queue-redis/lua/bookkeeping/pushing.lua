-- Storing new jobs, for the scripts that push. Needs all other library files.
--
-- Such a script has eight arguments for each job: id, entry, delay (ms), expiry (ms from
-- now, 0 for none), priority, unique key or empty, 'keep' or 'reschedule', '1' if the
-- client made the id else '0'. The entry ends with six bytes for the time of the push. A job
-- that follows another one has the entry of a held job.
local PUSH_FIELDS = 8

-- Fails before the first write if a key that a push writes has another type.
-- `begin_push` reads the others.
local function check_push(keys)
  check_ready(keys)
  redis.call('LLEN', keys.wake)
  for _, key in ipairs({keys.later, keys.ids, keys.calls}) do redis.call('ZCARD', key) end
  for _, key in ipairs({keys.unique, keys.answers}) do redis.call('HLEN', key) end
end

-- A push stores all of its jobs in one step (R5). One command for each key reads the side
-- records of all jobs, and one command writes them: a command for each job takes longer.

-- Returns a table with the value that the command returns for each member.
local function read_all(command, key, members)
  local found = {}
  if #members == 0 then return found end
  for i, value in ipairs(redis.call(command, key, unpack(members))) do
    found[members[i]] = value
  end
  return found
end

local function write_all(command, key, values)
  if #values > 0 then redis.call(command, key, unpack(values)) end
end

local function add_pair(list, first, second)
  local length = #list
  list[length + 1], list[length + 2] = first, second
end

-- Begins a push of the jobs from ARGV[first] on. `chosen` has the ids that clients chose;
-- `ids`, `unique`, `kept`, `due` and `results` have pairs of values for the commands, and
-- `plain` the entries to append, all not written yet. `is_kept` has the ids of all jobs that
-- this push schedules. `leaders` has the ids of the jobs that new ones are to follow, and
-- `followers` the lists of their followers.
local function begin_push(keys, first, now_ms)
  local chosen, unique_keys, keeps_any, leaders = {}, {}, false, {}
  for at = first, #ARGV, PUSH_FIELDS do
    keeps_any = keeps_any or keeps_result(ARGV[at + 1])
    if is_held(ARGV[at + 1]) then leaders[#leaders + 1] = read_entry(ARGV[at + 1]).leader end
    if ARGV[at + 7] == '1' then chosen[#chosen + 1] = ARGV[at] end
    if ARGV[at + 5] ~= '' then unique_keys[#unique_keys + 1] = ARGV[at + 5] end
  end
  if keeps_any then check_results(keys) end
  return {
    now_ms = now_ms, chosen = chosen,
    forget_ids_at = read_all('ZMSCORE', keys.ids, chosen),
    is_ready = ready_among(keys, chosen),
    holders = read_all('HMGET', keys.unique, unique_keys),
    has_kept = redis.call('HLEN', keys.jobs) > 0,
    ids = {}, unique = {}, kept = {}, due = {}, plain = {}, duplicates = {}, is_kept = {},
    results = {}, leaders = leaders, leaders_forget_at = read_all('ZMSCORE', keys.ids, leaders),
    followers = {},
  }
end

local function write_side_records(keys, new)
  write_all('HSET', keys.jobs, new.kept)
  write_all('ZADD', keys.later, new.due)
  write_all('ZADD', keys.ids, new.ids)
  write_all('HSET', keys.unique, new.unique)
  begin_results(keys, new.results)
  for leader, followers in pairs(new.followers) do write_followers(keys, leader, followers) end
  new.ids, new.unique, new.kept, new.due, new.results = {}, {}, {}, {}, {}
end

local function set_due_time(keys, new, id, delay_ms)
  local now_ms = new.now_ms
  -- The holder may be a job of this call.
  write_side_records(keys, new)
  local due = redis.call('ZSCORE', keys.later, id)
  -- A held job stays held.
  if not due or due == 'inf' then return end
  redis.call('ZADD', keys.later, behind_equals(keys.later, now_ms + delay_ms), id)
  notify(keys)
end

-- Whether a job has this id, or had it and the id is remembered.
local function knows_id(keys, new, id, is_indexed)
  if is_indexed then
    local forget_at = new.forget_ids_at[id]
    if forget_at and tonumber(forget_at) > new.now_ms then return true end
    if new.is_ready[id] then return true end
  end
  -- This also applies to an id that relq generated, because a client may have chosen
  -- the same one. After this check the id is free.
  return new.is_kept[id] or new.has_kept and redis.call('HEXISTS', keys.jobs, id) == 1
end

-- Returns 'id' or 'unique' and the id of the job of which this one is a duplicate, or nil.
local function existing_job(keys, new, job)
  local now_ms = new.now_ms
  if knows_id(keys, new, job.id, job.is_indexed) then return 'id', job.id end
  local holder = job.unique_key ~= '' and id_of_holder(new.holders[job.unique_key], now_ms)
  if not holder then return nil end
  if job.on_duplicate == 'reschedule' then set_due_time(keys, new, holder, job.delay_ms) end
  return 'unique', holder
end

-- Whether a job with this id is stored, and the id will be remembered.
local function is_live(new, id)
  local forget_at = new.forget_ids_at[id] or new.leaders_forget_at[id]
  return tonumber(forget_at or 0) == math.huge
end

-- Returns 'unknown' or 'not done' if no job can follow the one with this id, unless it is
-- an earlier job of the call; else whether a follower is held.
local function look_at_leader(new, id)
  local forget_at = tonumber(new.leaders_forget_at[id] or 0)
  if forget_at == math.huge then return true end
  if forget_at <= new.now_ms then return 'unknown' end
  -- See `remember_id`.
  return forget_at % 1 ~= 0 and 'not done'
end

-- The most followers of a leader, and the most bytes of their entries unless it is one.
local MOST_FOLLOWERS, MOST_FOLLOWERS_BYTES = 100, 1048576

-- Counts a follower of a leader that is stored. Returns whether the leader may have it.
local function count_follower(keys, new, counts, leader, entry)
  local followers = new.followers[leader] or read_followers(keys, leader)
  new.followers[leader] = followers
  local count = counts[leader] or {jobs = #followers, bytes = followers.bytes}
  counts[leader] = count
  if count.jobs >= MOST_FOLLOWERS then return false end
  if count.jobs > 0 and count.bytes + #entry > MOST_FOLLOWERS_BYTES then return false end
  count.jobs, count.bytes = count.jobs + 1, count.bytes + #entry
  return true
end

-- Checks the leaders of all jobs of a push before its first write. A job whose own id is
-- known is a duplicate, whatever became of its leader. Returns the position, from 0, of the
-- first job that cannot follow its leader, and why: 'unknown', 'not done' or 'too many'.
local function refused_follower(keys, new, first)
  if #new.leaders == 0 then return nil end
  -- The ids of the jobs of this call that come before a job and will be stored, and whether
  -- each id is remembered. Of a job with a unique key this is not known: it may be a duplicate.
  local earlier, counts = {}, {}
  for at = first, #ARGV, PUSH_FIELDS do
    local id, entry, is_indexed = ARGV[at], ARGV[at + 1], ARGV[at + 7] == '1'
    local is_known = knows_id(keys, new, id, is_indexed)
    local is_new = earlier[id] == nil and not is_known
    if is_new and is_held(entry) then
      local leader = read_entry(entry).leader
      local is_counted = look_at_leader(new, leader)
      if is_counted == 'unknown' and earlier[leader] then is_counted = true end
      if is_counted == true and not count_follower(keys, new, counts, leader, entry) then
        is_counted = 'too many'
      end
      if type(is_counted) == 'string' then return (at - first) / PUSH_FIELDS, is_counted end
    end
    if is_new and ARGV[at + 5] == '' then earlier[id] = is_indexed end
  end
end

-- Stores a follower of a job that is not done.
local function hold(keys, new, job, entry)
  local followers = new.followers[job.leader] or read_followers(keys, job.leader)
  new.followers[job.leader] = followers
  followers[#followers + 1], followers.bytes = job.id, followers.bytes + #entry
  new.is_kept[job.id] = true
  add_pair(new.kept, job.id, entry)
  add_pair(new.due, '+inf', job.id)
end

-- Notes what a new job has beside its entry: its id, its unique key, and `result` if its
-- result is kept. Returns the entry with the time of its expiry.
local function note_new_job(new, job, entry, result)
  if job.expires_at > 0 then entry = with_expiry(entry, job.id, job.expires_at) end
  if job.is_indexed then
    add_pair(new.ids, '+inf', job.id)
    new.forget_ids_at[job.id] = math.huge
  end
  if keeps_result(entry) then add_pair(new.results, job.id, result) end
  if job.unique_key ~= '' then
    local holder = unique_holder(job.id, job.expires_at)
    new.holders[job.unique_key] = holder
    add_pair(new.unique, job.unique_key, holder)
  end
  return entry
end

-- Stores a new job that is not held: scheduled until `due_ms`, or ready if that is nil.
local function place_new_job(keys, new, job, entry, due_ms)
  if due_ms then
    new.is_kept[job.id] = true
    add_pair(new.kept, job.id, entry)
    add_pair(new.due, due_score(keys, due_ms), job.id)
  elseif job.priority == NORMAL then
    new.plain[#new.plain + 1] = entry
  else
    -- A pattern with priorities needs no side record here, and may store the entry in
    -- `jobs`.
    make_ready(keys, job, entry, 'back')
    new.has_kept = true
  end
end

local function add_new_job(keys, new, job, entry)
  entry = with_push_time(entry, new.now_ms)
  entry = note_new_job(new, job, entry, UNFINISHED)
  local held = is_held(entry) and read_entry(entry)
  if held and is_live(new, held.leader) then
    hold(keys, new, held, entry)
    return
  end
  -- The leader is done.
  if held then entry = without_leader(entry, held) end
  local due_ms = job.delay_ms > 0 and new.now_ms + job.delay_ms or nil
  place_new_job(keys, new, job, entry, due_ms)
end

-- Notes that a job is a duplicate, if it is one. Returns whether it is.
local function note_duplicate(keys, new, job, position)
  local by, existing = existing_job(keys, new, job)
  if not by then return false end
  new.duplicates[#new.duplicates + 1] = position
  add_pair(new.duplicates, by, existing)
  return true
end

-- Writes what a push has noted.
local function finish_push(keys, new)
  write_side_records(keys, new)
  if #new.plain > 0 then append(keys, new.plain) end
end

-- Stores the jobs from ARGV[first] on. Returns three values for each duplicate, {position
-- from 0, 'id' or 'unique', id of the job that exists, ...}, and how many ids clients chose.
-- If a job cannot follow its leader, returns nil and the error RELQLEADER, and stores none.
local function push_jobs(keys, first, now_ms)
  local new = begin_push(keys, first, now_ms)
  local refused, why = refused_follower(keys, new, first)
  if refused then return nil, redis.error_reply('RELQLEADER ' .. refused .. ' ' .. why) end
  for at = first, #ARGV, PUSH_FIELDS do
    local expires_in_ms = tonumber(ARGV[at + 3])
    local job = {
      id = ARGV[at], delay_ms = tonumber(ARGV[at + 2]),
      expires_at = expires_in_ms > 0 and math.ceil(now_ms + expires_in_ms) or 0,
      priority = tonumber(ARGV[at + 4]), unique_key = ARGV[at + 5],
      on_duplicate = ARGV[at + 6], is_indexed = ARGV[at + 7] == '1',
      has_free_id = true,
    }
    if not note_duplicate(keys, new, job, (at - first) / PUSH_FIELDS) then
      add_new_job(keys, new, job, ARGV[at + 1])
    end
  end
  finish_push(keys, new)
  return new.duplicates, #new.chosen
end
