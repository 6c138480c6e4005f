-- How this pattern stores ready and leased jobs: one key for each. Needs relq-redis's
-- side_records.lua.
--
-- The keys of jobs are spread over the whole database. A script gets the keys of jobs
-- that are known before it runs at the end of its KEYS. For a scheduled or dead job
-- that it finds itself, it builds the key from the job's id.

local ITEM, PROCESSING = 'item_', 'processing_'

-- How many keys of its own this pattern passes to a script, between the bookkeeping
-- keys and the keys of jobs.
local PATTERN_KEYS = 3

local function pattern_keys(first)
  return {leased = KEYS[first], database = KEYS[first + 1], marker = KEYS[first + 2]}
end

-- The position in KEYS where the keys of jobs begin.
local function first_job_key()
  return BOOKKEEPING_KEYS + PATTERN_KEYS + 1
end

-- Whether this is the key of a ready job. A value of another type is not a job.
local function is_item(name)
  return name:sub(1, #ITEM) == ITEM and redis.call('TYPE', name).ok == 'string'
end

-- Returns a set of those ids that a ready job has. A push with such an id is a duplicate
-- (R4).
local function ready_among(_, ids)
  local items, is_ready = {}, {}
  for i, id in ipairs(ids) do items[i] = ITEM .. id end
  -- Most pushes have new ids only: one command finds that out for all of them.
  if #items == 0 or redis.call('EXISTS', unpack(items)) == 0 then return is_ready end
  for i, id in ipairs(ids) do is_ready[id] = is_item(items[i]) end
  return is_ready
end

-- Returns how many keys of the database are neither the queue's own nor those of leased
-- jobs: ready jobs and foreign keys. The count is exact, and reads no key.
local function unclaimed(keys)
  return redis.call('DBSIZE') - redis.call('ZCARD', keys.leased)
    - redis.call('EXISTS', unpack(KEYS, 1, BOOKKEEPING_KEYS + PATTERN_KEYS))
end

-- Makes the script fail, before its first write, if a key of this pattern has another
-- type. The keys of jobs are checked one by one elsewhere.
local function check_ready(keys)
  redis.call('ZCARD', keys.leased)
end

-- Returns an id that no ready job has: the given one, or a new one if a client has set
-- a job with the given id meanwhile.
local function free_id(id)
  local free, number = id, 1
  while redis.call('EXISTS', ITEM .. free) == 1 do
    number = number + 1
    free = id_of_another(id, number)
  end
  return free
end

-- Returns the entry with the new id `id`. The client did not choose this id, so the
-- index of clients' ids does not get it. See `keep`.
local function renamed(keys, job, entry, id)
  if holds_key(keys.unique, job) then
    redis.call('HSET', keys.unique, job.unique_key, unique_holder(id, job.expires_at))
  end
  if job.is_indexed then redis.call('ZREM', keys.ids, job.id) end
  -- Without an attempt the job has no error, and one under its id is that of another job.
  local note = job.attempt > 0 and redis.call('HGET', keys.errors, job.id)
  if note then
    redis.call('HSET', keys.errors, id, note)
    redis.call('HDEL', keys.errors, job.id)
  end
  return with_id(entry, job, id)
end

local function make_ready(keys, job, entry)
  local id = free_id(job.id)
  if id ~= job.id then
    entry = renamed(keys, read_entry(entry), entry, id)
    job.id = id
  end
  redis.call('SET', ITEM .. id, entry)
  notify(keys)
end

-- Makes the jobs of a push ready. Their ids are nearly always free and all different: then
-- one command stores all of the jobs.
local function append(keys, entries)
  local items, is_seen, are_different = {}, {}, true
  for i, entry in ipairs(entries) do
    local id = entry:sub(12, 11 + entry:byte(11))
    items[2 * i - 1], items[2 * i] = ITEM .. id, entry
    are_different, is_seen[id] = are_different and not is_seen[id], true
  end
  if are_different and redis.call('MSETNX', unpack(items)) == 1 then return notify(keys) end
  for _, entry in ipairs(entries) do make_ready(keys, read_entry(entry), entry) end
end

-- Returns the job of a key whose name has the id, or nil. A client may have copied the entry
-- of another job to the key, whose records belong to that job.
local function job_with_id(entry, id)
  local job = read_entry(entry)
  return job and job.id == id and job or nil
end

-- Returns the job id in the name of a processing key. Any client may have made the key.
-- The form of the name is in lease.rs.
local function id_of_lease(name)
  return name:match('^' .. PROCESSING .. '(.*)_[^_/]*/%d+/[^/]*$') or name:sub(#PROCESSING + 1)
end

-- Returns the entry of a leased job and the end of its lease (ms), or nil if the lease
-- is lost. `lease` is the job's processing key.
local function find_leased(keys, lease)
  local end_ms = redis.call('ZSCORE', keys.leased, lease)
  if not end_ms then return nil end
  local entry = redis.pcall('GET', lease) or ''
  -- A value of another type is not a job.
  if type(entry) ~= 'string' then return nil end
  return entry, end_ms
end

local function drop_leased(keys, lease)
  redis.call('UNLINK', lease)
  redis.call('ZREM', keys.leased, lease)
end
