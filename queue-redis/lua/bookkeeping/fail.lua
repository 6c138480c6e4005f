#!lua flags=allow-oom
-- Schedule failed jobs for another attempt, bury them, or postpone jobs that were not
-- run. A job with a delay of zero is ready at once, behind the jobs that are due. A job whose
-- entry another client has damaged is buried.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1...] for each job: lease, delay (ms) or -1 to bury, letter for why it is
--            buried, error. The letters x (expired) and m (malformed) say that it
--            was never delivered. The letter p postpones it: the delivery is not
--            counted, the job is not buried, and its last error stays as it is.
--
-- Returns {how many jobs were handled, {positions, from 0, of the leases that were
-- lost}}. It handles fewer jobs when their entries are large.
--
-- Library: entry, side_records, pattern, moves, followers
local keys = bind_keys()
local FIELDS = 4
local now_ms = server_ms()

-- Buries a job that was leased but not delivered. The attempt is not counted, and
-- without a `text` the error of the last attempt is kept.
local function bury_undelivered(job, entry, why, text)
  if text == '' then text = (redis.call('HGET', keys.errors, job.id) or ' '):sub(2) end
  bury(keys, job, with_attempt(entry, job.attempt - 1), why .. text, now_ms)
end

local function run_again(job, entry, delay_ms)
  -- A scheduled job that is due became ready before this one (R13).
  if delay_ms > 0 or due_age(keys, now_ms) >= 0 then
    schedule(keys, job, entry, now_ms + delay_ms)
  else
    make_leased_ready(keys, job, entry, now_ms)
  end
end

local function postpone(job, entry, delay_ms)
  run_again(job, with_attempt(entry, math.max(0, job.attempt - 1)), delay_ms)
  hold_until_expiry(keys.unique, job)
end

local function fail(job, entry, delay_ms, why, text)
  local is_last = job.attempt >= job.max_attempts
  if delay_ms < 0 or is_last then
    bury(keys, job, entry, (delay_ms < 0 and why or 'a') .. text, now_ms)
    return
  end
  run_again(job, entry, delay_ms)
  redis.call('HSET', keys.errors, job.id, 'e' .. text)
  hold_until_expiry(keys.unique, job)
end

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
for i = 1, #ARGV, FIELDS do check_lease(keys, ARGV[i], (i - 1) / FIELDS + 1) end

local lost, step, number = {}, new_step(#ARGV / FIELDS), 0
while has_room(step) do
  local i = number * FIELDS + 1
  local lease, delay_ms, why, text = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3]
  local entry = find_leased(keys, lease, number + 1)
  local job = entry and read_entry(entry)
  count_job(step, entry)
  if job and (why == 'x' or why == 'm') then
    bury_undelivered(job, entry, why, text)
  elseif job and why == 'p' then
    postpone(job, entry, delay_ms)
  elseif job then
    fail(job, entry, delay_ms, why, text)
  elseif entry then
    bury_damaged(keys, lease, entry, now_ms)
  end
  if entry then
    drop_leased(keys, lease, number + 1)
    settle_dropped(keys, step)
  else
    lost[#lost + 1] = number
  end
  number = number + 1
end
return {number, lost}
