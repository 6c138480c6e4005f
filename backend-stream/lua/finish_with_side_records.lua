#!lua flags=allow-oom
-- End jobs that have a unique key or an id that a client chose, that failed before, or
-- that are pieces of a batch.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] name of the total to increase
-- ARGV[2] how long an id is remembered after its job has ended (ms)
-- ARGV[3...] leases
--
-- Returns {how many jobs were handled, {positions, from 0, of the leases that were
-- lost}}. It handles fewer jobs when their entries are large.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local total, window_ms = ARGV[1], tonumber(ARGV[2])
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
for i = 3, #ARGV do check_lease(keys, ARGV[i]) end

local lost, step, handled = {}, new_step(#ARGV - 2), 0
while has_room(step) do
  local lease = ARGV[handled + 3]
  local stream, sid = place_of(keys, lease)
  if stream and redis.call('ZSCORE', keys.leased, lease) then
    local entry, job = read_at(stream, sid)
    count_job(step, entry)
    keys.outcome = total == 'finished' and 'done' or 'dropped'
    drop_leased(keys, lease)
    -- Another client may have deleted the entry: the job still counts as done.
    if job then close_side_records(keys, job, now_ms, window_ms) end
    add_to_total(keys.totals, total, 1)
  else
    lost[#lost + 1] = handled
    count_job(step, false)
  end
  handled = handled + 1
end
return {handled, lost}
