#!lua flags=allow-oom
-- Lease the picked jobs that are still ready.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs; then for each job:
-- KEYS[n]     STRING  its item key, which holds an entry or a bare payload
-- KEYS[n + 1] STRING  its processing key, unique to this call
-- ARGV[1] how many jobs at most
-- ARGV[2] lease (ms)
-- ARGV[3] header of the entry for a bare payload, up to the id's length
-- ARGV[4] how many keys are known not to be ready jobs
-- ARGV[5] how many bytes at most
-- ARGV[6] 'any' if the first job may have any size, else 'bounded'
-- ARGV[7...] the ids, in the order of the keys
--
-- Returns {now (ms), how many keys are unclaimed now, 1 if the next job does not fit
-- else 0, entry or false, ...}: for each job its entry as it is leased now, or false if
-- the job was not taken.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local wanted, lease_ms, bare_header = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local foreign_keys, FIRST_ID = tonumber(ARGV[4]), 7
local budget = new_budget(wanted, tonumber(ARGV[5]))
budget.has_taken = ARGV[6] == 'bounded'
local now_ms = server_ms()
-- As text, because the server would have to format the number for each job.
local usual_end = now_ms + lease_ms .. ''

-- If a key has another type, the script fails here, before its first write.
redis.call('ZCARD', keys.leased)
redis.call('HLEN', keys.unique)
redis.call('LLEN', keys.wake)

-- Counts this delivery in the stored entry, and returns the entry. An entry of relq
-- keeps its other bytes. Any other value is a bare payload and gets a header. So does
-- an entry that cannot be read, or whose id does not match its key.
local function count_delivery(processing, value, job, id)
  if not job then
    local entry = bare_header .. string.char(#id) .. id .. value
    redis.call('SET', processing, entry)
    return entry
  end
  hold_while_leased(keys.unique, job, now_ms)
  -- A time to live that a client set would delete the job while a worker holds it.
  redis.call('PERSIST', processing)
  redis.call('SETRANGE', processing, '6', struct.pack('>H', job.attempt + 1))
  return with_attempt(value, job.attempt + 1)
end

local function lease(item, processing, id)
  local value = redis.pcall('GET', item)
  if type(value) ~= 'string' or not may_take(budget, value) then return false end
  local job = job_with_id(value, id)
  local end_ms = job and job.lease_ms and now_ms + job.lease_ms or usual_end
  redis.call('ZADD', keys.leased, end_ms, processing)
  -- This rename is the lock: the first client that renames the key has the job.
  if redis.call('RENAMENX', item, processing) == 0 then
    redis.call('ZREM', keys.leased, processing)
    return false
  end
  return count_delivery(processing, value, job, id)
end

local entries, has_leased = {}, false
local is_paused = redis.call('EXISTS', keys.paused) == 1
for i = 0, #ARGV - FIRST_ID do
  local at = first_job_key() + 2 * i
  local entry = not is_paused and budget.jobs > 0
    and lease(KEYS[at], KEYS[at + 1], ARGV[FIRST_ID + i])
  entries[i + 1] = entry
  if entry then has_leased = true end
end

-- One notification wakes one worker. A claim that leaves jobs behind wakes the next.
local left = unclaimed(keys)
if has_leased and left > foreign_keys then notify(keys) end
return {math.floor(now_ms), left, budget.is_full and 1 or 0, unpack(entries)}
