#!lua flags=allow-oom
-- Look at the sets of the minutes that have come, and recover a page of jobs whose
-- lease has expired: make them ready, or bury them if that was their last attempt.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] maximum number of jobs, and of minutes to look at
--
-- Returns {how many were made ready, how many were buried, 1 if there is more else 0,
-- ms until the next lease may end or -1}. It recovers fewer jobs when their entries are
-- large.
--
-- Library: entry, pattern, moves
local keys = bind_keys()
local page = tonumber(ARGV[1])
local now_ms = server_ms()
local this_minute = minute_of(now_ms)

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
local overdue, is_noted, next_at = {}, {}, nil

-- Looks at the set of a minute: notes the leases that are overdue, drops those that
-- have ended, and moves those that were extended to the set of their end. A lease may
-- be in two sets.
local function look_at(minute)
  local set, left = set_of(keys, minute), 0
  for _, lease in ipairs(redis.call('SMEMBERS', set)) do
    local end_ms = end_of(keys, lease)
    local is_later = end_ms and end_ms > now_ms and minute_of(end_ms) > minute
    if is_later then look_in(keys, minute_of(end_ms), lease) end
    if is_later or not end_ms then
      redis.call('SREM', set, lease)
    else
      left = left + 1
    end
    if end_ms and end_ms <= now_ms then
      if not is_noted[lease] then
        overdue[#overdue + 1] = lease
      end
      is_noted[lease] = true
    elseif end_ms then
      next_at = math.min(next_at or end_ms, end_ms)
    end
  end
  if left == 0 then redis.call('ZREM', keys.minutes, string.format('%.0f', minute)) end
end

-- Also look at one minute that has not come: its leases say when recovery is needed
-- next. The minute after that one is not read, so a lease there may end when the minute
-- starts.
local minutes = redis.call('ZRANGE', keys.minutes, '-inf', '+inf', 'BYSCORE', 'LIMIT', 0,
  page + 2)
local is_over, looked = false, 0
for i = 1, math.min(#minutes, page + 1) do
  local minute = tonumber(minutes[i])
  if is_over then break end
  look_at(minute)
  looked, is_over = i, minute > this_minute
end
local unlooked = minutes[looked + 1] and tonumber(minutes[looked + 1])
if unlooked then
  local starts_at = math.max(now_ms, unlooked * MINUTE_MS)
  next_at = math.min(next_at or starts_at, starts_at)
end

-- Each job goes to the front, so that the job that was claimed first is there in the end.
last_claimed_first(overdue)
local counts, step, handled = {requeued = 0, buried = 0}, new_step(page), 0
while handled < #overdue and has_room(step) do
  handled = handled + 1
  local lease = overdue[handled]
  local entry = find_leased(keys, lease)
  local job = read_entry(entry)
  if job then
    local outcome = recover_job(keys, job, entry, now_ms)
    counts[outcome] = counts[outcome] + 1
  elseif entry ~= '' then
    -- Another client damaged the entry. The next claim makes its bytes a dead letter.
    redis.call('RPUSH', keys.ready, entry)
    counts.requeued = counts.requeued + 1
  end
  drop_leased(keys, lease)
  count_job(step, entry)
end
local has_more = #overdue > handled or unlooked and unlooked <= this_minute
return {
  counts.requeued, counts.buried, has_more and 1 or 0,
  next_at and math.max(0, next_at - now_ms) or -1,
}
