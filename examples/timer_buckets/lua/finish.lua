#!lua flags=allow-oom
-- End jobs that are done or discarded.
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
check_ready(keys)
check_side_records(keys)
local lost, step, handled = {}, new_step(#ARGV - 2), 0
while has_room(step) do
  local lease = ARGV[handled + 3]
  local entry = find_leased(keys, lease)
  count_job(step, entry)
  if entry then
    add_to_total(keys.totals, total, 1)
    local job = read_entry(entry)
    if job then close_side_records(keys, job, now_ms, window_ms, total) end
    drop_leased(keys, lease)
  else
    lost[#lost + 1] = handled
  end
  handled = handled + 1
end
return {handled, lost}
