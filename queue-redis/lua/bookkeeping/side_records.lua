-- The side records: the data that belongs to jobs but is stored outside the ready and
-- leased jobs, such as unique keys and remembered ids. Needs entry.lua.
local BOOKKEEPING_KEYS = 12

-- Adds the bookkeeping's keys by name to the table of the pattern's keys.
local function bind_bookkeeping(keys)
  keys.later, keys.jobs, keys.dead, keys.errors = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
  keys.unique, keys.ids, keys.calls, keys.answers = KEYS[5], KEYS[6], KEYS[7], KEYS[8]
  keys.cancelled, keys.totals, keys.paused, keys.wake = KEYS[9], KEYS[10], KEYS[11], KEYS[12]
  return keys
end

-- Fails if a key that `close_side_records` changes has the wrong type. Called before
-- the first write, because the writes of a script that fails are not undone.
local function check_side_records(keys)
  redis.call('HLEN', keys.unique)
  redis.call('ZCARD', keys.ids)
  redis.call('HLEN', keys.errors)
end

-- Fails if a key of the bookkeeping has the wrong type. The totals are not checked: see
-- `add_to_total`.
local function check_bookkeeping(keys)
  check_side_records(keys)
  for _, key in ipairs({keys.jobs, keys.answers}) do redis.call('HLEN', key) end
  for _, key in ipairs({keys.later, keys.dead, keys.calls, keys.cancelled}) do
    redis.call('ZCARD', key)
  end
  redis.call('LLEN', keys.wake)
end

-- Adds to one of the totals. If another client has overwritten the totals with another
-- type, nothing is added and no error is raised, because the other writes of the call
-- have already happened. A call that reads the totals reports the error.
local function add_to_total(totals, name, count)
  redis.pcall('HINCRBY', totals, name, count)
end

-- Wakes the client that waits on the list `wake`, or the next client that will wait
-- there. Only the first call of this function in a run of a script has an effect,
-- because one notification is enough for all jobs of the run.
local is_notified = false

local function notify(keys)
  if is_notified then return end
  is_notified = true
  if redis.call('LLEN', keys.wake) == 0 then redis.call('LPUSH', keys.wake, '1') end
end

-- `check_lease` and `check_job` check the keys that belong to one lease or one job
-- only. Most patterns have no such keys; a pattern that has them overrides these
-- functions.
local function check_lease()
end

local function check_job()
end

-- Returns the id of the job of a lease. A pattern whose leased entries another client can
-- change overrides this function.
local function id_of_lease(lease)
  return lease
end

-- Returns the id of the job that holds a unique key, or nil if no job does. `holder` is
-- the value that `unique` stores for the key, or false if it stores none.
local function id_of_holder(holder, now_ms)
  local expires_at, id = (holder or ''):match('^(%d+) (.*)$')
  if not id then return nil end
  expires_at = tonumber(expires_at)
  if expires_at > 0 and expires_at <= now_ms then return nil end
  return id
end

-- Whether a job still holds its unique key. Once the job's hold has expired, another
-- job may have taken the key.
local function holds_key(unique, job)
  local holder = job.unique_key and redis.call('HGET', unique, job.unique_key) or ''
  return holder:match('^%d+ (.*)$') == job.id
end

-- Sets the time until which a job holds its unique key (ms, 0 for as long as the job
-- exists).
local function hold_until(unique, job, expires_at)
  if holds_key(unique, job) then
    redis.call('HSET', unique, job.unique_key, unique_holder(job.id, expires_at))
  end
end

-- Called for a job that is no longer leased: its unique key is freed when it expires.
local function hold_until_expiry(unique, job)
  if (job.expires_at or 0) > 0 then hold_until(unique, job, job.expires_at) end
end

-- Called for a job that is being leased. A leased job does not expire, so its unique key does
-- not become free by time. An expired job is leased only to be buried, and its key stays free.
local function hold_while_leased(unique, job, now_ms)
  if (job.expires_at or 0) > now_ms then hold_until(unique, job, 0) end
end

local function free_unique(unique, job)
  if holds_key(unique, job) then redis.call('HDEL', unique, job.unique_key) end
end

-- Results (R29), followers (R30) and reports of workers (R33) are stored in keys that are
-- described in keys.rs. Only scripts that serve them alone declare these keys. The others
-- build their names from the declared key `errors`, so that a queue without them sends no
-- byte for them. All these keys are in the queue's slot.
local function results_key(keys, what)
  return keys.errors:sub(1, -7) .. what
end

-- How many ends of jobs the stream `ended` keeps, about. A producer that was away for
-- longer reads the results of all jobs that it waits for.
local ENDS_KEPT = 1000

-- The letters of the ways in which a job ends, by the totals that count them.
local END_LETTERS = {finished = 'd', discarded = 'i', cancelled = 'c'}
local DEAD, PURGED, UNFINISHED, REPORTED = 'x', 'p', 'u', 'r'

-- Stores how a job has ended, if it keeps that. If another client has overwritten a key
-- with another type, nothing is stored and no error is raised, because the job has ended
-- already. A call that reads the results reports the error.
local function end_result(keys, job, now_ms, letter, value)
  if not job.keep_ms then return end
  local kept = results_key(keys, 'kept')
  redis.pcall('HSET', results_key(keys, 'results'), job.id, letter .. (value or ''))
  if letter ~= DEAD then redis.pcall('ZADD', kept, now_ms + job.keep_ms, job.id) end
  redis.pcall('XADD', results_key(keys, 'ended'), 'MAXLEN', '~', ENDS_KEPT, '*', 'id', job.id)
end

-- Fails before the first write if a key that `begin_results` changes has another type.
local function check_results(keys)
  redis.call('HLEN', results_key(keys, 'results'))
  redis.call('ZCARD', results_key(keys, 'kept'))
end

-- Stores that jobs which keep their results are not finished: new ones, and redriven ones.
-- `records` has the id and the record of each.
local function begin_results(keys, records)
  if #records == 0 then return end
  local kept, ids = results_key(keys, 'kept'), {}
  for i = 1, #records, 2 do ids[#ids + 1] = records[i] end
  redis.call('ZREM', kept, unpack(ids))
  redis.call('HSET', results_key(keys, 'results'), unpack(records))
end

-- Removes the results of all jobs, the lists of followers and the reports of workers, and
-- wakes the clients that wait for results. Called in the step that removes the last jobs of
-- the queue.
local function purge_results(keys)
  local ended = results_key(keys, 'ended')
  redis.call('UNLINK', results_key(keys, 'followers'), results_key(keys, 'orphans'))
  redis.call('UNLINK', results_key(keys, 'alive'), results_key(keys, 'runs'))
  if redis.call('UNLINK', results_key(keys, 'results'), results_key(keys, 'kept')) == 0 then
    redis.call('UNLINK', ended)
    return
  end
  -- An entry without an id means all jobs.
  redis.pcall('XADD', ended, 'MAXLEN', 1, '*', 'id', '')
  redis.call('EXPIRE', ended, 3600)
end

-- Reads the first argument of a script that ends jobs: the total to increase, or 'results'
-- if the jobs are finished and the result of each follows its lease. Returns the total, and
-- how many arguments each job has.
local function read_ending(word)
  if word == 'results' then return 'finished', 2 end
  return word, 1
end

-- Whether this queue has followers (R30), once `check_leaders` has looked; and the jobs
-- that this call has ended and that may have followers. `settle_leaders` handles these.
local has_followers, ended_leaders = nil, {}

-- Looks whether the queue has followers. If it has, this also adds the names of the keys of
-- the bookkeeping that the script does not declare, and fails if a key that
-- `settle_leaders` changes has another type. Called before the first write. Returns whether
-- it has followers.
local function check_leaders(keys)
  if has_followers ~= nil then return has_followers end
  has_followers = redis.call('HLEN', results_key(keys, 'followers')) > 0
  if not has_followers then return false end
  for _, what in ipairs({'later', 'jobs', 'wake', 'totals'}) do
    keys[what] = keys[what] or results_key(keys, what)
  end
  check_side_records(keys)
  redis.call('HLEN', keys.jobs)
  redis.call('LLEN', keys.wake)
  for _, key in ipairs({keys.later, results_key(keys, 'orphans')}) do
    redis.call('ZCARD', key)
  end
  return true
end

-- Remembers the id of a job that has ended, at least for `window_ms`, and as long as its
-- result. So no other job takes the id while the result can be read. The time of a job that
-- was not done ends with half a millisecond, so that no job can follow it.
local function remember_id(keys, job, now_ms, window_ms, total)
  if not job.is_indexed then return end
  local is_done = total == 'finished'
  local forget_at = now_ms + math.max(window_ms, job.keep_ms or 0)
  redis.call('ZADD', keys.ids, is_done and forget_at or forget_at + 0.5, job.id)
  ended_leaders[#ended_leaders + 1] = {id = job.id, is_done = is_done}
end

-- Cleans up after a job that ends: frees its unique key, remembers its id, and stores how
-- it ended. `total` counts jobs that end so; `value` is the result of a finished job.
local function close_side_records(keys, job, now_ms, window_ms, total, value)
  free_unique(keys.unique, job)
  end_result(keys, job, now_ms, END_LETTERS[total], value)
  remember_id(keys, job, now_ms, window_ms, total)
  redis.call('HDEL', keys.errors, job.id)
end

-- Whether an entry belongs to a job that keeps its result.
local function keeps_result(entry)
  return entry:byte(6) >= 64
end

-- Returns a set of those ids that a ready job has, if the pattern can look that up. Most
-- patterns have no index of ready jobs; a pattern with one overrides this function.
local function ready_among()
  return {}
end

-- Whether a ready job has its entry in the hash `jobs` under this id. A pattern that keeps
-- ready jobs there overrides this function.
local function find_kept_ready()
  return false
end

-- The score for a new member of a sorted set of times. It sorts behind all members of
-- the same millisecond. The whole part of a score is the time. Its fraction is the
-- member's position among those of that time, in the smallest steps of a double: 4,096
-- steps until the year 2039, half as many after that. Members beyond that number share
-- the last step.
local function score_behind(set, time_ms, last)
  -- Lua would round a time of 15 digits, which a restored job may have.
  local above = string.format('(%.0f', time_ms + 1)
  last = last or tonumber(redis.call('ZRANGE', set, above, time_ms, 'BYSCORE', 'REV',
    'LIMIT', 0, 1, 'WITHSCORES')[2])
  if not last then return time_ms end
  local _, exponent = math.frexp(time_ms)
  local score = last + math.ldexp(1, exponent - 53)
  return score < time_ms + 1 and score or last
end

-- For each set and time, the score of the last member that this call has added.
local last_scores = {}

local function behind_equals(set, time_ms)
  local scores = last_scores[set] or {}
  last_scores[set] = scores
  scores[time_ms] = score_behind(set, time_ms, scores[time_ms])
  return scores[time_ms]
end

-- Removes up to `most` members of a sorted set of times whose time has passed. Returns
-- the removed members.
local function forget(set, now_ms, most)
  local old = redis.call('ZRANGE', set, '-inf', now_ms, 'BYSCORE', 'LIMIT', 0, most)
  if #old > 0 then redis.call('ZREM', set, unpack(old)) end
  return old
end

-- Removes up to `most` push tokens that need not be remembered any longer, and their
-- results. Returns how many tokens it removed.
local function forget_calls(keys, now_ms, most)
  local old = forget(keys.calls, now_ms, most)
  if #old > 0 then redis.call('HDEL', keys.answers, unpack(old)) end
  return #old
end

-- Removes up to `most` results that need not be kept any longer, or about as many bytes of
-- them as a step moves. Returns how many, and `most` if there are more. If a key has another
-- type, it fails before its first write.
local function forget_results(keys, now_ms, most)
  local kept, results = results_key(keys, 'kept'), results_key(keys, 'results')
  local old = redis.call('ZRANGE', kept, '-inf', now_ms, 'BYSCORE', 'LIMIT', 0, most)
  local gone, step = {}, new_step(most)
  while #gone < #old and has_room(step) do
    gone[#gone + 1] = old[#gone + 1]
    count_job(step, redis.call('HGET', results, gone[#gone]))
  end
  if #gone > 0 then
    redis.call('HDEL', results, unpack(gone))
    redis.call('ZREM', kept, unpack(gone))
  end
  return #gone < #old and most or #gone
end

-- Removes up to `most` reports of workers that are not listed any longer, or those from
-- before the clock was set back. A report lists its worker for `listed_ms`. Returns how many.
-- No job depends on the reports (R33), so keys of another type stay and raise no error.
local function forget_workers(keys, now_ms, most, listed_ms)
  local alive, last = results_key(keys, 'alive'), '(' .. now_ms + listed_ms
  local old = redis.pcall('ZRANGE', alive, '-inf', now_ms, 'BYSCORE', 'LIMIT', 0, most)
  if #old == 0 then
    old = redis.pcall('ZRANGE', alive, last, '+inf', 'BYSCORE', 'LIMIT', 0, most)
  end
  if #old > 0 then
    redis.pcall('HDEL', results_key(keys, 'runs'), unpack(old))
    redis.call('ZREM', alive, unpack(old))
  end
  return #old
end

-- The longest prefix of a UTF-8 text that has at most `most_bytes` bytes and ends with
-- a whole character.
local function start_of(text, most_bytes)
  local next_byte = text:byte(most_bytes + 1) or 0
  while next_byte >= 128 and next_byte < 192 do
    most_bytes = most_bytes - 1
    next_byte = text:byte(most_bytes + 1) or 0
  end
  return text:sub(1, most_bytes)
end

-- Returns another id for a job whose id is taken: `id`, cut short if necessary, and
-- `number`. The result is no longer than the longest allowed id.
local function id_of_another(id, number)
  return start_of(id, 120) .. '~' .. number
end

-- Lets the job that is stored under this id have the index of the id. The end of that job
-- then releases or cancels the followers of the id (R30), and until then a push of the id
-- is a duplicate (R4). An entry that cannot be read has no index.
local function pass_index_on(keys, id)
  local entry = redis.call('HGET', keys.jobs, id)
  local job = read_entry(entry)
  if not job then
    redis.call('ZREM', keys.ids, id)
  elseif not job.is_indexed then
    redis.call('HSET', keys.jobs, id, with_index(entry))
  end
end

-- Stores an entry in the hash `jobs` under its job's id. Two jobs can have the same id:
-- a client chose it twice, or used a push token again after the queue had forgotten it.
-- The second job is then stored under another id, so that no job is lost. A caller that
-- knows that the id is free sets `job.has_free_id`.
local function keep(keys, job, entry)
  local id, number = job.id, 1
  while not job.has_free_id and redis.call('HEXISTS', keys.jobs, id) == 1 do
    number = number + 1
    id = id_of_another(job.id, number)
  end
  if number > 1 then
    if holds_key(keys.unique, job) then
      redis.call('HSET', keys.unique, job.unique_key, unique_holder(id, job.expires_at))
    end
    if job.is_indexed then pass_index_on(keys, job.id) end
    -- No client knows the new id, so none could read the result.
    if job.keep_ms then redis.pcall('HDEL', results_key(keys, 'results'), job.id) end
    entry = with_id(without_result(entry, job), job, id)
    job.id, job.keep_ms = id, nil
  end
  redis.call('HSET', keys.jobs, id, entry)
end

-- Buries a job that was already removed from where it was stored. `why` is a letter for
-- the reason, followed by the last error.
local function bury(keys, job, entry, why, now_ms)
  keep(keys, job, entry)
  redis.call('ZADD', keys.dead, behind_equals(keys.dead, now_ms), job.id)
  redis.call('HSET', keys.errors, job.id, why)
  free_unique(keys.unique, job)
  end_result(keys, job, now_ms, DEAD, why)
end
