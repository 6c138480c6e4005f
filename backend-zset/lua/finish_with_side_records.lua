#!lua flags=allow-oom
-- End jobs that hold a unique key or a client-made id, or that failed before.
--
-- KEYS[1] leased  ZSET  lease -> end (ms)
-- KEYS[2] held    HASH  lease -> entry
-- KEYS[3] totals  HASH  name -> count
-- KEYS[4] unique  HASH  unique key -> holder
-- KEYS[5] ids     ZSET  client-made id -> when it may be forgotten (ms)
-- KEYS[6] errors  HASH  id -> last error
-- ARGV[1] name of the total to increase, or 'results' if the jobs are finished and the
--         result of each follows its lease
-- ARGV[2] how long an id is remembered after its job has ended (ms)
-- ARGV[3...] leases, and results
--
-- Returns {how many jobs were handled, {positions, from 0, of the leases that were
-- lost}}. It handles fewer jobs when their entries are large.
--
-- Library: entry, side_records, pattern, followers
local keys = {
  leased = KEYS[1], held = KEYS[2], totals = KEYS[3], unique = KEYS[4], ids = KEYS[5],
  errors = KEYS[6],
}
local total, width = read_ending(ARGV[1])
local window_ms = tonumber(ARGV[2])
local FIRST = 3
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
redis.call('ZCARD', keys.leased)
redis.call('HLEN', keys.held)
check_side_records(keys)
if check_leaders(keys) then
  add_ready_keys(keys)
  check_ready(keys)
end
local lost, step, handled = {}, new_step((#ARGV - FIRST + 1) / width), 0
while has_room(step) do
  local at = FIRST + handled * width
  local lease, value = ARGV[at], width == 2 and ARGV[at + 1]
  local entry = find_leased(keys, lease)
  count_job(step, entry, value)
  if entry then
    add_to_total(keys.totals, total, 1)
    local job = read_entry(entry)
    if job then close_side_records(keys, job, now_ms, window_ms, total, value) end
    drop_leased(keys, lease)
    settle_leaders(keys, now_ms, window_ms, step)
  else
    lost[#lost + 1] = handled
  end
  handled = handled + 1
end
return {handled, lost}
