#!lua flags=allow-oom
-- Recover a page of jobs whose lease has expired: make them ready, or bury them if that
-- was their last attempt.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] maximum number of jobs
--
-- Returns {how many were made ready, how many were buried, 1 if there is more else 0,
-- ms until the next lease ends or -1}. It recovers fewer jobs when their entries are
-- large.
--
-- Library: entry, pattern, moves
local keys = bind_keys()
local page = tonumber(ARGV[1])
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
local counts, step, handled = {requeued = 0, buried = 0}, new_step(page), 0

-- Each job goes to the front, so the first one is at the front in the end. Over the pages
-- that is the job whose lease expired first, and within a page the job that was claimed
-- first: leases of one claim differ in their lengths, and a heartbeat may have extended
-- some of them.
local overdue =
  redis.call('ZRANGE', keys.leased, now_ms, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, page + 1)
last_claimed_first(overdue)
while handled < #overdue and has_room(step) do
  handled = handled + 1
  local entry = held_entry(keys, overdue[handled])
  local job = read_entry(entry)
  if job then
    local outcome = recover_job(keys, job, entry, now_ms)
    counts[outcome] = counts[outcome] + 1
  elseif entry ~= '' then
    bury_damaged(keys, overdue[handled], entry, now_ms)
    counts.buried = counts.buried + 1
  end
  drop_leased(keys, overdue[handled])
  count_job(step, entry)
end
return {
  counts.requeued, counts.buried, #overdue > handled and 1 or 0,
  next_in_ms(keys.leased, now_ms),
}
