#!lua
-- Store jobs that use an option, or the jobs of a call with a push token.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] push token, or empty
-- ARGV[2] how long tokens are remembered (ms)
-- ARGV[3...] for each job: id, entry, delay (ms), expiry (ms from now, 0 for none),
--            priority, unique key or empty, 'keep' or 'reschedule', '1' if the
--            client made the id else '0'
--
-- Returns three values for each duplicate, {position from 0, 'id' or 'unique', id of
-- the job that exists, ...}; or the error RELQTOKEN if the token belongs to another
-- call.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local token, window_ms = ARGV[1], tonumber(ARGV[2])
local FIRST, FIELDS = 3, 8
local count = (#ARGV - FIRST + 1) / FIELDS
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_ready(keys)
redis.call('LLEN', keys.wake)
for _, key in ipairs({keys.later, keys.ids, keys.calls}) do redis.call('ZCARD', key) end
for _, key in ipairs({keys.unique, keys.answers}) do redis.call('HLEN', key) end
local has_kept = redis.call('HLEN', keys.jobs) > 0

if token ~= '' then
  local forget_at = redis.call('ZSCORE', keys.calls, token)
  if forget_at and tonumber(forget_at) > now_ms then
    local first = cmsgpack.unpack(redis.call('HGET', keys.answers, token))
    if first.count ~= count then
      return redis.error_reply('RELQTOKEN the token is that of a call with other jobs')
    end
    return first.duplicates
  end
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

-- The ids that clients chose, and the unique keys.
local chosen, unique_keys = {}, {}
for at = FIRST, #ARGV, FIELDS do
  if ARGV[at + 7] == '1' then chosen[#chosen + 1] = ARGV[at] end
  if ARGV[at + 5] ~= '' then unique_keys[#unique_keys + 1] = ARGV[at + 5] end
end
local forget_ids_at = read_all('ZMSCORE', keys.ids, chosen)
local is_ready = ready_among(keys, chosen)
local holders = read_all('HMGET', keys.unique, unique_keys)

-- What this call has not written yet: pairs of values for the commands, and the entries to
-- append. `is_kept` has the ids of all jobs that this call schedules.
local ids, unique, kept, due, plain = {}, {}, {}, {}, {}
local duplicates, is_kept = {}, {}

local function write_side_records()
  write_all('HSET', keys.jobs, kept)
  write_all('ZADD', keys.later, due)
  write_all('ZADD', keys.ids, ids)
  write_all('HSET', keys.unique, unique)
  ids, unique, kept, due = {}, {}, {}, {}
end

local function set_due_time(id, delay_ms)
  -- The holder may be a job of this call.
  write_side_records()
  if not redis.call('ZSCORE', keys.later, id) then return end
  redis.call('ZADD', keys.later, behind_equals(keys.later, now_ms + delay_ms), id)
  notify(keys)
end

local function is_duplicate(job)
  if job.is_indexed then
    local forget_at = forget_ids_at[job.id]
    if forget_at and tonumber(forget_at) > now_ms then return 'id', job.id end
    if is_ready[job.id] then return 'id', job.id end
  end
  -- This also applies to an id that relq generated, because a client may have chosen
  -- the same one. After this check the id is free.
  if is_kept[job.id] or has_kept and redis.call('HEXISTS', keys.jobs, job.id) == 1 then
    return 'id', job.id
  end
  local holder = job.unique_key ~= '' and id_of_holder(holders[job.unique_key], now_ms)
  if not holder then return nil end
  if job.on_duplicate == 'reschedule' then set_due_time(holder, job.delay_ms) end
  return 'unique', holder
end

local function store(job, entry)
  local expires_at = 0
  if job.expires_in_ms > 0 then
    expires_at = math.ceil(now_ms + job.expires_in_ms)
    entry = with_expiry(entry, job.id, expires_at)
  end
  if job.is_indexed then
    add_pair(ids, '+inf', job.id)
    forget_ids_at[job.id] = math.huge
  end
  if job.unique_key ~= '' then
    local holder = unique_holder(job.id, expires_at)
    holders[job.unique_key] = holder
    add_pair(unique, job.unique_key, holder)
  end
  if job.delay_ms > 0 then
    is_kept[job.id] = true
    add_pair(kept, job.id, entry)
    add_pair(due, due_score(keys, now_ms + job.delay_ms), job.id)
  elseif job.priority == NORMAL then
    plain[#plain + 1] = entry
  else
    -- A pattern with priorities needs no side record here, and may store the entry in
    -- `jobs`.
    make_ready(keys, job, entry, 'back')
    has_kept = true
  end
end

for i = 0, count - 1 do
  local at = FIRST + i * FIELDS
  local job = {
    id = ARGV[at], delay_ms = tonumber(ARGV[at + 2]), expires_in_ms = tonumber(ARGV[at + 3]),
    priority = tonumber(ARGV[at + 4]), unique_key = ARGV[at + 5],
    on_duplicate = ARGV[at + 6], is_indexed = ARGV[at + 7] == '1',
    has_free_id = true,
  }
  local by, existing = is_duplicate(job)
  if by then
    duplicates[#duplicates + 1] = i
    add_pair(duplicates, by, existing)
  else
    store(job, ARGV[at + 1])
  end
end
write_side_records()
if #plain > 0 then append(keys, plain) end

-- How many expired tokens and ids a push forgets for each one that it adds. Where no
-- reaper runs, only pushes remove them.
local FORGOTTEN = 4

if token ~= '' then
  redis.call('ZADD', keys.calls, now_ms + window_ms, token)
  redis.call('HSET', keys.answers, token,
    cmsgpack.pack({count = count, duplicates = duplicates}))
  forget_calls(keys, now_ms, FORGOTTEN)
end
if #chosen > 0 then forget(keys.ids, now_ms, count + FORGOTTEN) end
return duplicates
