#!lua flags=allow-oom
-- End jobs that have a unique key or an id of the client's, that failed before, or that
-- are pieces of a batch.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] name of the total to increase
-- ARGV[2] how long an id is remembered after its job has ended (ms)
-- ARGV[3...] leases
--
-- Returns the positions, from 0, of the leases that were lost.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local total, window_ms = ARGV[1], tonumber(ARGV[2])
local now_ms = server_ms()

-- Keys of another type fail here, before the first write.
check_keys(keys)
for i = 3, #ARGV do check_lease(keys, ARGV[i]) end

local lost = {}
for i = 3, #ARGV do
  local lease = ARGV[i]
  local stream, sid = place_of(keys, lease)
  if stream and redis.call('ZSCORE', keys.leased, lease) then
    local _, job = read_at(stream, sid)
    keys.outcome = total == 'finished' and 'done' or 'dropped'
    drop_leased(keys, lease)
    -- Another client may have deleted the entry: the job still counts as done.
    if job then close_side_records(keys, job, now_ms, window_ms) end
    redis.call('HINCRBY', keys.totals, total, 1)
  else
    lost[#lost + 1] = i - 3
  end
end
return lost
