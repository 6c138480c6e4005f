#!lua flags=allow-oom
-- End a ready job.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] the stream, as the name of a lease names it: a letter, or b: and a batch's id
-- ARGV[2] id of its entry in the stream
-- ARGV[3] how long an id is remembered after its job has ended (ms)
--
-- Returns 1 if the job was there and ready, else 0.
--
-- Library: entry, side_records, pattern, batch/records, moves, followers
local keys = bind_keys()
local word, sid, window_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local stream, batch = stream_by(keys, word)
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
check_leaders(keys)
if batch then check_batch(keys, batch) end
local _, job = read_at(stream, sid)
if not job then return 0 end
if #in_group('XPENDING', stream, GROUP, sid, sid, 1, LEASED) > 0 then return 0 end
redis.call('XACK', stream, GROUP, sid)
redis.call('XDEL', stream, sid)
close_side_records(keys, job, now_ms, window_ms, 'cancelled')
if batch then refresh(keys, batch) end
add_to_total(keys.totals, 'cancelled', 1)
settle_leaders(keys, now_ms, window_ms, new_step(1))
return 1
