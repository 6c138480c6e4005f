-- Moves between the bookkeeping's keys and the pattern's ready and leased jobs. Needs
-- side_records.lua and the pattern's pattern.lua.

-- Binds all keys of a call to one of the bookkeeping's scripts.
local function bind_keys()
  return bind_bookkeeping(pattern_keys(BOOKKEEPING_KEYS + 1))
end

-- Fails before the first write if a key of the bookkeeping or of the pattern has the
-- wrong type.
local function check_keys(keys)
  check_bookkeeping(keys)
  check_ready(keys)
end

-- Makes a job ready. Its entry is in `jobs`.
local function make_kept_ready(keys, job, entry)
  job.is_kept = true
  if make_ready(keys, job, entry, 'back') ~= 'kept' then
    redis.call('HDEL', keys.jobs, job.id)
  end
end

-- The earliest score of the scheduled jobs, once this call has scheduled one.
local earliest

-- Schedules a job that was already removed from where it was stored. A client that
-- sleeps until the next job is due must be woken for an earlier one.
local function schedule(keys, job, entry, due_ms)
  keep(keys, job, entry)
  local score = behind_equals(keys.later, due_ms)
  earliest = earliest
    or tonumber(redis.call('ZRANGE', keys.later, 0, 0, 'WITHSCORES')[2] or math.huge)
  redis.call('ZADD', keys.later, score, job.id)
  if score < earliest then
    earliest = score
    notify(keys)
  end
end

-- The maximum length of a stored error in bytes. The end of a longer one is kept.
local MOST_ERROR_BYTES = 8192

-- Returns the job's last error with a note that the lease of this attempt expired, so
-- that a dead letter whose last attempt never finished says why.
local function with_lost_lease(keys, job)
  local last = (redis.call('HGET', keys.errors, job.id) or ' '):sub(2)
  local this = 'attempt ' .. job.attempt .. ': lease ended, no heartbeat'
  local text = last == '' and this or last .. '; ' .. this
  if #text <= MOST_ERROR_BYTES then return text end
  return text:sub(-MOST_ERROR_BYTES):match('; (attempt .*)$') or this
end

-- Records, for a job that is ready again, that its lease expired.
local function note_lost_lease(keys, job)
  redis.call('HSET', keys.errors, job.id, 'e' .. with_lost_lease(keys, job))
end

-- Handles a job whose lease has expired: makes it ready again, or buries it if this was
-- its last attempt. Returns 'requeued' or 'buried'.
local function recover_job(keys, job, entry, now_ms)
  if job.attempt >= job.max_attempts then
    bury(keys, job, entry, 'c' .. with_lost_lease(keys, job), now_ms)
    return 'buried'
  end
  note_lost_lease(keys, job)
  hold_until_expiry(keys.unique, job)
  make_ready(keys, job, entry, 'front')
  return 'requeued'
end

-- Whole milliseconds until the earliest time in a sorted set of times, or -1 if the set
-- is empty. The fraction of a score is not part of its time: see `behind_equals`.
local function next_in_ms(set, now_ms)
  local first = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')[2]
  return first and math.max(0, math.floor(first) - now_ms) or -1
end

-- A total as a number. Fails if another client has overwritten it with text.
local function total_of(name, text)
  local count = tonumber(text or 0)
  if not count then error({err = 'WRONGTYPE the total "' .. name .. '" is no number'}) end
  return count
end

-- The counts at the end of every pattern's stats: scheduled, dead, finished,
-- discarded, cancelled, 1 if paused else 0, ms until the next delayed job is due or -1.
local function bookkeeping_stats(keys, now_ms)
  local ended = redis.call('HMGET', keys.totals, 'finished', 'discarded', 'cancelled')
  return redis.call('ZCARD', keys.later), redis.call('ZCARD', keys.dead),
    total_of('finished', ended[1]), total_of('discarded', ended[2]),
    total_of('cancelled', ended[3]),
    redis.call('EXISTS', keys.paused), next_in_ms(keys.later, now_ms)
end
