#!lua
-- Store jobs that use an option, or the jobs of a call with a push token.
--
-- KEYS[1...] the bookkeeping's, then the pattern's: keys.rs
-- ARGV[1] call token, or empty
-- ARGV[2] how long tokens are remembered (ms)
-- ARGV[3...] for each job: id, entry, delay (ms), expiry (ms from now, 0 for none),
--            priority, unique key or empty, 'keep' or 'reschedule', '1' if the
--            client made the id else '0'
--
-- Returns the duplicates as {position from 0, 'id' or 'unique', id of the job that
-- exists, ...}, or the error RELQTOKEN when the token belongs to another call.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local token, window_ms = ARGV[1], tonumber(ARGV[2])
local FIELDS, count = 8, (#ARGV - 2) / 8
local now_ms = server_ms()

-- A key of another type fails here, before the first write.
check_ready(keys)
redis.call('LLEN', keys.wake)
for _, key in ipairs({keys.later, keys.ids, keys.calls}) do redis.call('ZCARD', key) end
for _, key in ipairs({keys.jobs, keys.unique, keys.answers}) do redis.call('HLEN', key) end

if token ~= '' then
  local forget_at = redis.call('ZSCORE', keys.calls, token)
  if forget_at and tonumber(forget_at) > now_ms then
    local first = cmsgpack.unpack(redis.call('HGET', keys.answers, token))
    if first.count ~= count then
      return redis.error_reply('RELQTOKEN the token is that of a call with other jobs')
    end
    return first.duplicates
  end
end

local duplicates, plain, has_ids = {}, {}, false

-- Without a reaper nothing else forgets tokens and ids. So a call forgets more of each
-- than it adds.
local FORGOTTEN = 4

local function is_duplicate(job)
  if job.is_indexed then
    local forget_at = redis.call('ZSCORE', keys.ids, job.id)
    if forget_at and tonumber(forget_at) > now_ms then return 'id', job.id end
    if is_ready(keys, job.id) then return 'id', job.id end
  end
  -- A generated id that another job has already: see `keep`. From here on the id is free.
  if redis.call('HEXISTS', keys.jobs, job.id) == 1 then return 'id', job.id end
  local holder = job.unique_key ~= '' and holder_of(keys.unique, job.unique_key, now_ms)
  if not holder then return nil end
  if job.on_duplicate == 'reschedule' and redis.call('ZSCORE', keys.later, holder.id) then
    redis.call('ZADD', keys.later, behind_equals(keys.later, now_ms + job.delay_ms), holder.id)
    notify(keys)
  end
  return 'unique', holder.id
end

local function store(job, entry)
  local expires_at = 0
  if job.expires_in_ms > 0 then
    expires_at = math.ceil(now_ms + job.expires_in_ms)
    entry = with_expiry(entry, read_entry(entry), expires_at)
  end
  if job.is_indexed then redis.call('ZADD', keys.ids, '+inf', job.id) end
  if job.unique_key ~= '' then
    redis.call('HSET', keys.unique, job.unique_key, unique_holder(job.id, expires_at))
  end
  if job.delay_ms > 0 then
    schedule(keys, job, entry, now_ms + job.delay_ms)
  elseif job.priority == NORMAL then
    plain[#plain + 1] = entry
  else
    make_ready(keys, job, entry, 'back')
  end
end

for i = 0, count - 1 do
  local at = 3 + i * FIELDS
  local job = {
    id = ARGV[at], delay_ms = tonumber(ARGV[at + 2]), expires_in_ms = tonumber(ARGV[at + 3]),
    priority = tonumber(ARGV[at + 4]), unique_key = ARGV[at + 5],
    on_duplicate = ARGV[at + 6], is_indexed = ARGV[at + 7] == '1',
    has_free_id = true,
  }
  has_ids = has_ids or job.is_indexed
  local by, existing = is_duplicate(job)
  if by then
    duplicates[#duplicates + 1] = i
    duplicates[#duplicates + 1] = by
    duplicates[#duplicates + 1] = existing
  else
    store(job, ARGV[at + 1])
  end
end
if #plain > 0 then append(keys, plain) end

if token ~= '' then
  redis.call('ZADD', keys.calls, now_ms + window_ms, token)
  redis.call('HSET', keys.answers, token,
    cmsgpack.pack({count = count, duplicates = duplicates}))
  forget_calls(keys, now_ms, FORGOTTEN)
end
if has_ids then forget(keys.ids, now_ms, count + FORGOTTEN) end
return duplicates
