#!lua flags=allow-oom
-- Put leased jobs back to the front of the queue, as if they had not been claimed. A job
-- whose entry another client has damaged is buried.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1...] leases; the job of the last one is claimed first
--
-- Returns {how many jobs were handled, {positions, from 0, of the leases that were
-- lost}}. It handles fewer jobs when their entries are large.
--
-- Library: entry, side_records, pattern, moves, followers
local keys = bind_keys()

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
for i, lease in ipairs(ARGV) do check_lease(keys, lease, i) end

local lost, step, handled = {}, new_step(#ARGV), 0
while has_room(step) do
  local i = handled + 1
  local entry = find_leased(keys, ARGV[i], i)
  local job = entry and read_entry(entry)
  count_job(step, entry)
  if job then
    hold_until_expiry(keys.unique, job)
    make_ready(keys, job, with_attempt(entry, math.max(0, job.attempt - 1)), 'front')
  elseif entry then
    bury_damaged(keys, ARGV[i], entry, server_ms())
  end
  if entry then
    drop_leased(keys, ARGV[i], i)
    settle_dropped(keys, step)
  else
    lost[#lost + 1] = handled
  end
  handled = i
end
return {handled, lost}
