#!lua flags=allow-oom
-- Forget a page of ids, call tokens and cancelled leases whose retention has expired.
--
-- KEYS[1...] the bookkeeping's, then the pattern's: keys.rs
-- ARGV[1] maximum number of each to forget
--
-- Returns 1 if there is more else 0.
--
-- Library: entry, side_records, moves
local keys = bind_keys()
local page = tonumber(ARGV[1])
local now_ms = server_ms()

-- A key of another type fails here, before the first write.
check_bookkeeping(keys)

local has_more = 0
for _, key in ipairs({keys.ids, keys.calls, keys.cancelled}) do
  local old = redis.call('ZRANGE', key, '-inf', now_ms, 'BYSCORE', 'LIMIT', 0, page)
  if #old > 0 then
    if key == keys.calls then redis.call('HDEL', keys.answers, unpack(old)) end
    redis.call('ZREM', key, unpack(old))
  end
  if #old == page then has_more = 1 end
end
return has_more
