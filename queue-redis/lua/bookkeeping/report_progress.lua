#!lua
-- Store what a worker reports of a job that it holds, if the job keeps its result.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] lease
-- ARGV[2] the progress
--
-- Returns 'stored', 'lost' if the lease was lost, or 'not kept'.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local lease, progress = ARGV[1], ARGV[2]

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
check_lease(keys, lease, 1)
local entry = find_leased(keys, lease, 1)
if not entry then return 'lost' end
local job = read_entry(entry)
if not job or not job.keep_ms then return 'not kept' end
redis.call('HSET', results_key(keys, 'results'), job.id, REPORTED .. progress)
return 'stored'
