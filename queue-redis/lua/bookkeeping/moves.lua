-- Moves between the bookkeeping's keys and the pattern's ready and leased jobs. Needs
-- side_records.lua and the pattern's pattern.lua.

-- Returns a table of all keys of a call by name: the bookkeeping's and the pattern's.
local function bind_keys()
  return bind_bookkeeping(pattern_keys(BOOKKEEPING_KEYS + 1))
end

-- Fails before the first write if a key of the bookkeeping or of the pattern has the
-- wrong type.
local function check_keys(keys)
  check_bookkeeping(keys)
  check_ready(keys)
end

-- Makes a job ready whose entry is in the hash `jobs`. `entry` may differ from the one
-- that is stored there.
local function make_kept_ready(keys, job, entry, now_ms)
  -- The pattern may give the job another id.
  local stored_id = job.id
  job.is_kept, entry = true, with_time(entry, job, READY_TIME, now_ms)
  if make_ready(keys, job, entry, 'back') ~= 'kept' then
    redis.call('HDEL', keys.jobs, stored_id)
  end
end

-- Buries a job whose entry cannot be read (R3). The entry is in the hash `jobs`.
local function bury_unreadable(keys, id, now_ms)
  redis.call('ZADD', keys.dead, behind_equals(keys.dead, now_ms), id)
  redis.call('HSET', keys.errors, id, 'mits entry cannot be read')
end

-- Buries a leased job whose entry another client has damaged, with the bytes that are left.
-- Keeps nothing if no byte is left.
local function bury_damaged(keys, lease, entry, now_ms)
  if entry == '' then return end
  local own_id, number = id_of_lease(lease), 1
  local id = own_id
  while redis.call('HEXISTS', keys.jobs, id) == 1 do
    number = number + 1
    id = id_of_another(own_id, number)
  end
  redis.call('HSET', keys.jobs, id, entry)
  bury_unreadable(keys, id, now_ms)
end

-- Makes a scheduled job ready that is not held. An entry that cannot be read becomes a dead
-- letter (R3). Then `job` is nil; `entry` is false if there is none.
local function make_due_ready(keys, id, entry, job, now_ms)
  if job then
    make_kept_ready(keys, job, entry, now_ms)
  elseif entry then
    bury_unreadable(keys, id, now_ms)
  end
  redis.call('ZREM', keys.later, id)
end

-- The earliest score of the scheduled jobs; nil until this call has scheduled a job.
local earliest

-- The score in `later` for a job that is due at that time. If no other job is due
-- earlier, wakes a client that sleeps until the next job is due.
local function due_score(keys, due_ms)
  local score = behind_equals(keys.later, due_ms)
  earliest = earliest
    or tonumber(redis.call('ZRANGE', keys.later, 0, 0, 'WITHSCORES')[2] or math.huge)
  if score < earliest then
    earliest = score
    notify(keys)
  end
  return score
end

-- Schedules a job that was already removed from where it was stored.
local function schedule(keys, job, entry, due_ms)
  keep(keys, job, entry)
  redis.call('ZADD', keys.later, due_score(keys, due_ms), job.id)
end

-- Makes a leased job ready, behind all jobs that are ready. The caller drops its lease.
local function make_leased_ready(keys, job, entry, now_ms)
  make_ready(keys, job, with_time(entry, job, READY_TIME, now_ms), 'back')
end

-- The maximum length of a stored error in bytes. Of a longer error the end is kept.
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

-- Adds to the last error of a job that is ready again that its lease expired.
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

-- Sorts the names of leases, the one that was claimed last first. The patterns that call
-- this name a lease by its worker, the time of the claim (us), the claim's nonce with the
-- number of the job, and the job's id, with a slash between two of them. Only the id may
-- hold a slash.
local function last_claimed_first(leases)
  local claims = {}
  for _, lease in ipairs(leases) do
    claims[lease] = lease:match('^[^/]*/(%d+/[^/]*)/') or ''
  end
  table.sort(leases, function(a, b) return claims[a] > claims[b] end)
end

-- Whole milliseconds until the earliest time in a sorted set of times, or -1 if the set
-- has none. Only the whole part of a score is a time: see `score_behind`. The infinite score
-- of a held job is no time.
local function next_in_ms(set, now_ms)
  local first = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES')[2]
  if not first or first == 'inf' then return -1 end
  return math.max(0, math.floor(first) - now_ms)
end

-- How long ago the first scheduled job was due (ms), or -1 if none is due. A due job stays
-- scheduled until a worker makes it ready.
local function due_age(keys, now_ms)
  local first = redis.call('ZRANGE', keys.later, 0, 0, 'WITHSCORES')[2]
  return first and math.max(-1, now_ms - math.floor(first)) or -1
end

-- Reads one of the totals, such as the number of finished jobs. Fails if another client
-- has overwritten it with text that is not a number.
local function total_of(name, text)
  local count = tonumber(text or 0)
  if not count then error({err = 'WRONGTYPE the total "' .. name .. '" is no number'}) end
  return count
end

-- The values at the end of the stats of every pattern: scheduled, dead, finished,
-- discarded, cancelled, 1 if paused else 0, ms until the next delayed job is due or -1.
local function bookkeeping_stats(keys, now_ms)
  local ended = redis.call('HMGET', keys.totals, 'finished', 'discarded', 'cancelled')
  return redis.call('ZCARD', keys.later), redis.call('ZCARD', keys.dead),
    total_of('finished', ended[1]), total_of('discarded', ended[2]),
    total_of('cancelled', ended[3]),
    redis.call('EXISTS', keys.paused), next_in_ms(keys.later, now_ms)
end
