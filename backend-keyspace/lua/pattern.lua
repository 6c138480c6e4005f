-- How this pattern keeps ready and leased jobs: a key each. Needs relq-redis's
-- side_records.lua.
--
-- The keys of jobs are those of the whole database. A script gets the ones that were
-- known before it ran among its KEYS, behind all others; those that it finds out by
-- itself, for a job that was scheduled or dead, it makes of the job's id.

local ITEM, PROCESSING = 'item_', 'processing_'

-- The bookkeeping's keys and these are all that a queue has beside those of jobs.
local PATTERN_KEYS = 3

-- The longest beginning of an entry that `read_entry` looks at: the fixed part, an id,
-- two times and a unique key. So no payload is copied where only its job is asked for.
local LONGEST_HEAD = 540

local function pattern_keys(first)
  return {leased = KEYS[first], database = KEYS[first + 1], marker = KEYS[first + 2]}
end

-- Where in KEYS those of jobs begin.
local function first_job_key()
  return BOOKKEEPING_KEYS + PATTERN_KEYS + 1
end

-- Whether the key is one of a ready job. Another type of value is nobody's job.
local function is_item(name)
  return name:sub(1, #ITEM) == ITEM and redis.call('TYPE', name).ok == 'string'
end

-- A push by an id that any client has set already is a second push of it (R4).
local function is_ready(_, id)
  return is_item(ITEM .. id)
end

-- How many keys there are beside the queue's own and those of leased jobs: ready jobs,
-- and what is none of the queue's. Exact, without a look at any of them.
local function unclaimed(keys)
  return redis.call('DBSIZE') - redis.call('ZCARD', keys.leased)
    - redis.call('EXISTS', unpack(KEYS, 1, BOOKKEEPING_KEYS + PATTERN_KEYS))
end

-- Makes sure that a notifier notifies, or that the next one to listen does.
local function notify(keys)
  if redis.call('LLEN', keys.wake) == 0 then redis.call('LPUSH', keys.wake, '1') end
end

-- Fails before the first write where a key has another type. Those of jobs are looked at
-- one by one.
local function check_ready(keys)
  redis.call('ZCARD', keys.leased)
end

-- An id that no ready job has: the given one, unless some client has set it meanwhile.
local function free_id(id)
  local free, number = id, 1
  while redis.call('EXISTS', ITEM .. free) == 1 do
    number = number + 1
    free = id_of_another(id, number)
  end
  return free
end

-- The entry by that other id, which was not the client's choice. See `keep`.
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

-- The id in the name of a processing key, whoever made it: see lease.rs.
local function id_of_lease(name)
  return name:match('^' .. PROCESSING .. '(.*)_[^_/]*/%d+/[^/]*$') or name:sub(#PROCESSING + 1)
end

-- A lease is the name of its processing key.
local function find_leased(keys, lease)
  local end_ms = redis.call('ZSCORE', keys.leased, lease)
  if not end_ms then return nil end
  local entry = redis.pcall('GET', lease) or ''
  -- Another type of value is nobody's job.
  if type(entry) ~= 'string' then return nil end
  return entry, end_ms
end

local function drop_leased(keys, lease)
  redis.call('UNLINK', lease)
  redis.call('ZREM', keys.leased, lease)
end
