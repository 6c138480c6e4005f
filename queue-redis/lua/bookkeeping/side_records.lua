-- What is kept beside the ready and leased jobs of a queue. Needs entry.lua.
local BOOKKEEPING_KEYS = 12

-- Adds the bookkeeping's keys to those of the pattern.
local function bind_bookkeeping(keys)
  keys.later, keys.jobs, keys.dead, keys.errors = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
  keys.unique, keys.ids, keys.calls, keys.answers = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
  keys.cancelled, keys.totals, keys.paused, keys.wake = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
  return keys
end

-- Fails where what `close_side_records` changes has another type: before the first write, because
-- a script that fails is not undone.
local function check_side_records(keys)
  redis.call('HLEN', keys.unique)
  redis.call('ZCARD', keys.ids)
  redis.call('HLEN', keys.errors)
end

-- The same of all that the bookkeeping keeps.
local function check_bookkeeping(keys)
  check_side_records(keys)
  for _, key in ipairs({keys.jobs, keys.answers, keys.totals}) do redis.call('HLEN', key) end
  for _, key in ipairs({keys.later, keys.dead, keys.calls, keys.cancelled}) do
    redis.call('ZCARD', key)
  end
  redis.call('LLEN', keys.wake)
end

-- The same of what only this lease or job has. Most patterns have no such keys; one that
-- has them has functions of these names of its own.
local function check_lease()
end

local function check_job()
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

-- Cleans up behind a job that ends: its unique key is free, its id is remembered.
local function close_side_records(keys, job, now_ms, window_ms)
  free_unique(keys.unique, job)
  if job.is_indexed then redis.call('ZADD', keys.ids, now_ms + window_ms, job.id) end
  redis.call('HDEL', keys.errors, job.id)
end

-- Whether a ready job has that id, where a pattern can tell at once. Most keep no index
-- of them; one that does has a function of that name of its own.
local function is_ready()
  return false
end

-- The score of one more member of a sorted set of times: behind all members of the same
-- millisecond. A score's whole part is the time. Its fraction is the member's place among
-- those of that time, in the smallest steps of a double: 4,096 of them until the year 2039,
-- half as many after that. Members beyond these share the last step.
local function behind_equals(set, time_ms)
  local last = redis.call('ZRANGE', set, '(' .. time_ms + 1, time_ms, 'BYSCORE', 'REV',
    'LIMIT', 0, 1, 'WITHSCORES')[2]
  if not last then return time_ms end
  local _, exponent = math.frexp(time_ms)
  local score = last + math.ldexp(1, exponent - 53)
  return score < time_ms + 1 and score or last
end

-- The start of a text of UTF-8, of so many bytes at most: it ends with a whole character.
local function start_of(text, most_bytes)
  local next_byte = text:byte(most_bytes + 1) or 0
  while next_byte >= 128 and next_byte < 192 do
    most_bytes = most_bytes - 1
    next_byte = text:byte(most_bytes + 1) or 0
  end
  return text:sub(1, most_bytes)
end

-- The id by which the job of that number is kept, of several that have got one id. It is no
-- longer than an id may be.
local function id_of_another(id, number)
  return start_of(id, 120) .. '~' .. number
end

-- Keeps an entry by its job's id in `jobs`. Two jobs can have got one id, by a client's
-- own choice or by a token that was used again after its time: then the one that comes
-- second is kept by another id, and none is lost.
local function keep(keys, job, entry)
  local id, number = job.id, 1
  while redis.call('HEXISTS', keys.jobs, id) == 1 do
    number = number + 1
    id = id_of_another(job.id, number)
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

-- Buries a job that is in no place any more. `why` is a letter and the last error.
local function bury(keys, job, entry, why, now_ms)
  keep(keys, job, entry)
  redis.call('ZADD', keys.dead, behind_equals(keys.dead, now_ms), job.id)
  redis.call('HSET', keys.errors, job.id, why)
  free_unique(keys.unique, job)
end
