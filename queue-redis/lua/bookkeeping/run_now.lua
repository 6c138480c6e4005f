#!lua flags=allow-oom
-- Make a scheduled job ready, as if it were due. A held job stays held.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] id
--
-- Returns {'ready', 1 if the job is a piece of a batch else 0}; {'held', id of the leader};
-- or {'not scheduled'}.
--
-- Library: entry, side_records, moves, followers
local keys = bind_keys()
local id = ARGV[1]

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
if not redis.call('ZSCORE', keys.later, id) then return {'not scheduled'} end
local entry = redis.call('HGET', keys.jobs, id)
local job = read_entry(entry or '')
if job and job.leader then return {'held', job.leader} end
check_job(keys, job)

make_due_ready(keys, id, entry, job, server_ms())
settle_dropped(keys, new_step(1))
if not job then return {'not scheduled'} end
return {'ready', job.batch and 1 or 0}
