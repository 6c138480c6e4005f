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

-- Keeps an entry by its job's id in `jobs`. Two jobs can have got one id, by a client's
-- own choice or by a token that was used again after its time: then the one that comes
-- second is kept by another id, and none is lost.
local function keep(keys, job, entry)
  local id, number = job.id, 1
  while redis.call('HEXISTS', keys.jobs, id) == 1 do
    number = number + 1
    id = job.id:sub(1, 120) .. '~' .. number
  end
  if number > 1 then
    if holds_key(keys.unique, job) then
      redis.call('HSET', keys.unique, job.unique_key, unique_holder(id, job.expires_at))
    end
    if job.is_indexed then redis.call('ZREM', keys.ids, job.id) end
    entry = with_id(entry, job, id)
    job.id = id
  end
  redis.call('HSET', keys.jobs, id, entry)
end

-- Makes a job ready that is in no place any more: 'front' or 'back'.
local function make_ready(keys, job, entry, direction)
  if job.priority == NORMAL then
    redis.call(direction == 'back' and 'LPUSH' or 'RPUSH', keys.ready, entry)
  else
    keep(keys, job, entry)
    set_rank(keys.ranked, job, direction)
    ring(keys.wake)
  end
end

-- Buries a job that is in no place any more. `why` is a letter and the last error.
local function bury(keys, job, entry, why, now_ms)
  keep(keys, job, entry)
  redis.call('ZADD', keys.dead, now_ms, job.id)
  redis.call('HSET', keys.errors, job.id, why)
  free_unique(keys.unique, job)
end
