#!lua flags=allow-oom
-- Forget a page of ids, push tokens, cancelled leases, results and reports of workers whose
-- retention has expired. Cancel a page of the followers whose leader has ended without
-- being done.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] maximum number of each to forget, and of followers to cancel
-- ARGV[2] how long an id is remembered after its job has ended (ms)
-- ARGV[3] how long a worker is listed after a report (ms)
--
-- Returns 1 if there is more else 0.
--
-- Library: entry, side_records, moves, followers
local keys = bind_keys()
local page, window_ms, listed_ms = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_bookkeeping(keys)
local has_more = redis.call('ZCARD', results_key(keys, 'orphans')) > 0
if has_more then
  check_leaders(keys)
  has_more = cancel_orphans(keys, now_ms, window_ms, new_step(page))
end

local forgotten = math.max(
  forget_results(keys, now_ms, page),
  forget_calls(keys, now_ms, page),
  #forget(keys.ids, now_ms, page),
  #forget(keys.cancelled, now_ms, page),
  forget_workers(keys, now_ms, page, listed_ms))
return (has_more or forgotten == page) and 1 or 0
