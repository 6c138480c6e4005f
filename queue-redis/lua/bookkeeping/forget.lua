#!lua flags=allow-oom
-- Forget a page of ids, push tokens, cancelled leases and results whose retention has
-- expired.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] maximum number of each to forget
--
-- Returns 1 if there is more else 0.
--
-- Library: entry, side_records, moves
local keys = bind_keys()
local page = tonumber(ARGV[1])
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_bookkeeping(keys)

local forgotten = math.max(
  forget_results(keys, now_ms, page),
  forget_calls(keys, now_ms, page),
  #forget(keys.ids, now_ms, page),
  #forget(keys.cancelled, now_ms, page))
return forgotten == page and 1 or 0
