-- Moves that several scripts make. They call the functions of queue-redis's entry.lua.

-- A ranked job's rank: whole steps for the priorities, the most urgent first, and
-- within a step the order of its ready jobs, from the middle on to both sides.
local RANKS = 2 ^ 44
local NORMAL_RANKS = (9 - NORMAL) * RANKS

-- Makes sure that a doorbell rings, or that the next one to listen does.
local function ring(wake)
  if redis.call('LLEN', wake) == 0 then redis.call('LPUSH', wake, '1') end
end

local function set_rank(ranked, job, direction)
  local low = (9 - job.priority) * RANKS
  local edge
  if direction == 'back' then
    edge = redis.call('ZRANGE', ranked, '(' .. low + RANKS, low, 'BYSCORE', 'REV',
      'LIMIT', 0, 1, 'WITHSCORES')[2]
  else
    edge = redis.call('ZRANGE', ranked, low, '(' .. low + RANKS, 'BYSCORE',
      'LIMIT', 0, 1, 'WITHSCORES')[2]
  end
  local step = direction == 'back' and 1 or -1
  redis.call('ZADD', ranked, edge and edge + step or low + RANKS / 2, job.id)
end

-- Makes a job ready whose entry is in `jobs`, or is to be: 'front' or 'back'.
local function make_ready(keys, job, entry, direction)
  if job.priority == NORMAL then
    redis.call(direction == 'back' and 'LPUSH' or 'RPUSH', keys.ready, entry)
    redis.call('HDEL', keys.jobs, job.id)
  else
    redis.call('HSET', keys.jobs, job.id, entry)
    set_rank(keys.ranked, job, direction)
    ring(keys.wake)
  end
end

-- The holder of a unique key as {expires_at, id}, or nil when it is free.
local function holder_of(unique, key, now_ms)
  local expires_at, id = (redis.call('HGET', unique, key) or ''):match('^(%d+) (.*)$')
  if not id then return nil end
  expires_at = tonumber(expires_at)
  if expires_at > 0 and expires_at <= now_ms then return nil end
  return {expires_at = expires_at, id = id}
end

-- Whether a job holds its unique key: once it had expired, another may have taken it.
local function holds_key(unique, job)
  local holder = job.unique_key and redis.call('HGET', unique, job.unique_key) or ''
  return holder:match('^%d+ (.*)$') == job.id
end

-- Changes until when a job holds its unique key (ms, 0 for as long as it lives).
local function hold_until(unique, job, expires_at)
  if holds_key(unique, job) then
    redis.call('HSET', unique, job.unique_key, unique_holder(job.id, expires_at))
  end
end

-- Lets a job that is leased no more lose its unique key when it expires.
local function hold_until_expiry(unique, job)
  if (job.expires_at or 0) > 0 then hold_until(unique, job, job.expires_at) end
end

local function free_unique(unique, job)
  if holds_key(unique, job) then redis.call('HDEL', unique, job.unique_key) end
end

-- Buries a job whose entry is in `jobs`. `why` is a letter and the last error.
local function bury(keys, job, why, now_ms)
  redis.call('ZADD', keys.dead, now_ms, job.id)
  redis.call('HSET', keys.errors, job.id, why)
  free_unique(keys.unique, job)
end

-- The id in a lease: worker/since/nonce/id, where only the id may hold a slash.
local function id_of(lease)
  return lease:match('^[^/]*/[^/]*/[^/]*/(.*)$')
end
