#!lua flags=allow-oom
-- End jobs that have a unique key or an id that a client chose, that failed before, or
-- that are pieces of a batch.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] name of the total to increase, or 'results' if the jobs are finished and the
--         result of each follows its lease
-- ARGV[2] how long an id is remembered after its job has ended (ms)
-- ARGV[3...] leases, and results
--
-- Returns {how many jobs were handled, {positions, from 0, of the leases that were
-- lost}}. It handles fewer jobs when their entries are large.
--
-- Library: entry, side_records, pattern, moves, followers
local keys = bind_keys()
local total, width = read_ending(ARGV[1])
local window_ms = tonumber(ARGV[2])
local FIRST = 3
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
check_leaders(keys)
for i = FIRST, #ARGV, width do check_lease(keys, ARGV[i]) end

local lost, step, handled = {}, new_step((#ARGV - FIRST + 1) / width), 0
while has_room(step) do
  local at = FIRST + handled * width
  local lease, value = ARGV[at], width == 2 and ARGV[at + 1]
  local stream, sid = place_of(keys, lease)
  if stream and redis.call('ZSCORE', keys.leased, lease) then
    local entry, job = read_at(stream, sid)
    count_job(step, entry, value)
    keys.outcome = total == 'finished' and 'done' or 'dropped'
    drop_leased(keys, lease)
    -- Another client may have deleted the entry: the job still ends as its worker says.
    job = job or read_entry(entry_of_deleted(keys, job_of(lease)))
    close_side_records(keys, job, now_ms, window_ms, total, value)
    add_to_total(keys.totals, total, 1)
    settle_leaders(keys, now_ms, window_ms, step)
  else
    lost[#lost + 1] = handled
    count_job(step, false)
  end
  handled = handled + 1
end
return {handled, lost}
