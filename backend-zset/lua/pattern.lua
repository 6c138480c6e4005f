-- How this pattern stores ready and leased jobs. Needs relq-redis's side_records.lua.

-- Rank of a job in `ranked`, the score of its member. Each priority has its own range
-- of ranks, and more urgent priorities have lower ranks. Within a range, a job that is
-- added at the back gets a rank above all others, and a job that is added at the front
-- a rank below them, starting in the middle.
local RANKS = 2 ^ 44
local NORMAL_RANKS = (9 - NORMAL) * RANKS

local function pattern_keys(first)
  return {
    ready = KEYS[first], ranked = KEYS[first + 1], leased = KEYS[first + 2],
    held = KEYS[first + 3],
  }
end

-- Adds the names of the keys of ready jobs, for a script that does not declare them: see
-- `results_key`. The name of the queue is between braces in the names of its other keys.
local function add_ready_keys(keys)
  keys.ready, keys.ranked = keys.errors:sub(2, -9), results_key(keys, 'ranked')
end

-- Fails before the first write if a key has the wrong type.
local function check_ready(keys)
  redis.call('LLEN', keys.ready)
  redis.call('ZCARD', keys.ranked)
  redis.call('ZCARD', keys.leased)
  redis.call('HLEN', keys.held)
end

local function append(keys, entries)
  redis.call('LPUSH', keys.ready, unpack(entries))
end

-- Returns the id of the first job of a priority, and its rank. Returns {} if there is none.
local function first_ranked(ranked, priority)
  local low = (9 - priority) * RANKS
  return redis.call('ZRANGE', ranked, low, '(' .. low + RANKS, 'BYSCORE',
    'LIMIT', 0, 1, 'WITHSCORES')
end

local function set_rank(ranked, job, direction)
  local low = (9 - job.priority) * RANKS
  local edge
  if direction == 'back' then
    edge = redis.call('ZRANGE', ranked, '(' .. low + RANKS, low, 'BYSCORE', 'REV',
      'LIMIT', 0, 1, 'WITHSCORES')[2]
  else
    edge = first_ranked(ranked, job.priority)[2]
  end
  local step = direction == 'back' and 1 or -1
  redis.call('ZADD', ranked, edge and edge + step or low + RANKS / 2, job.id)
end

-- Whether a ready job has its entry in the hash `jobs`.
local function find_kept_ready(keys, id)
  return redis.call('ZSCORE', keys.ranked, id)
end

-- Moves the jobs in `handed` back to the ready list: a job that goes to the front of that
-- list must be served before them (R13). Each waiting claim has moved at most one job. If
-- another client has put another type there, the next claim fails at it.
local function put_back_handed(keys)
  local handed = results_key(keys, 'handed')
  for _ = 1, tonumber(redis.pcall('LLEN', handed)) or 0 do
    redis.call('LMOVE', handed, keys.ready, 'LEFT', 'RIGHT')
  end
end

local function make_ready(keys, job, entry, direction)
  if job.priority == NORMAL then
    if direction == 'front' then put_back_handed(keys) end
    redis.call(direction == 'back' and 'LPUSH' or 'RPUSH', keys.ready, entry)
    return nil
  end
  if job.is_kept then
    redis.call('HSET', keys.jobs, job.id, entry)
  else
    keep(keys, job, entry)
  end
  set_rank(keys.ranked, job, direction)
  notify(keys)
  return 'kept'
end

-- Returns the job id in the name of a lease: see `lease_all`.
local function id_of_lease(lease)
  return lease:match('^[^/]*/%d+/[^/]*/(.*)$') or lease
end

-- The entry of a lease with its delivery counted. A claim does not rewrite entries,
-- which is cheaper, and most jobs end without needing the count.
local function held_entry(keys, lease)
  local entry = redis.call('HGET', keys.held, lease) or ''
  local job = read_entry(entry)
  return job and with_attempt(entry, job.attempt + 1) or entry
end

local function find_leased(keys, lease)
  local end_ms = redis.call('ZSCORE', keys.leased, lease)
  if not end_ms then return nil end
  return held_entry(keys, lease), end_ms
end

local function drop_leased(keys, lease)
  redis.call('HDEL', keys.held, lease)
  redis.call('ZREM', keys.leased, lease)
end
