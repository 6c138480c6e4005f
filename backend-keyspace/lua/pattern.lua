-- How this pattern stores ready and leased jobs: one key for each. Needs relq-redis's
-- side_records.lua.
--
-- The keys of jobs are spread over the whole database. A script gets the keys of jobs
-- that are known before it runs at the end of its KEYS. For a scheduled or dead job
-- that it finds itself, it builds the key from the job's id.

local ITEM, PROCESSING = 'item_', 'processing_'

-- Besides the keys of jobs, a queue has only the bookkeeping keys and these.
local PATTERN_KEYS = 3

-- How many bytes of an entry `read_entry` needs at most: the fixed part, an id, two
-- times and a unique key. A script that needs no payload reads only these.
local LONGEST_HEAD = 540

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

-- A push with an id that any client has already set is a duplicate (R4).
local function is_ready(_, id)
  return is_item(ITEM .. id)
end

-- The number of keys besides the queue's own and those of leased jobs: ready jobs and
-- foreign keys. It is exact, and no key is read for it.
local function unclaimed(keys)
  return redis.call('DBSIZE') - redis.call('ZCARD', keys.leased)
    - redis.call('EXISTS', unpack(KEYS, 1, BOOKKEEPING_KEYS + PATTERN_KEYS))
end

-- Fails before the first write if a key has another type. Keys of jobs are checked one
-- by one elsewhere.
local function check_ready(keys)
  redis.call('ZCARD', keys.leased)
end

-- An id that no ready job has: the given one, unless a client has set it meanwhile.
local function free_id(id)
  local free, number = id, 1
  while redis.call('EXISTS', ITEM .. free) == 1 do
    number = number + 1
    free = id_of_another(id, number)
  end
  return free
end

-- The entry under the new id. The client did not choose this id, so it is not indexed
-- as a client's id. See `keep`.
local function renamed(keys, job, entry, id)
  if holds_key(keys.unique, job) then
    redis.call('HSET', keys.unique, job.unique_key, unique_holder(id, job.expires_at))
  end
  if job.is_indexed then redis.call('ZREM', keys.ids, job.id) end
  return with_id(entry, job, id)
end

local function make_ready(keys, job, entry)
  local id = free_id(job.id)
  if id ~= job.id then entry = renamed(keys, read_entry(entry), entry, id) end
  redis.call('SET', ITEM .. id, entry)
  notify(keys)
end

local function append(keys, entries)
  for _, entry in ipairs(entries) do make_ready(keys, read_entry(entry), entry) end
end

-- The id in the name of a processing key. Any client may have made it: see lease.rs.
local function id_of_lease(name)
  return name:match('^' .. PROCESSING .. '(.*)_[^_/]*/%d+/[^/]*$') or name:sub(#PROCESSING + 1)
end

-- A lease is named by its processing key.
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
