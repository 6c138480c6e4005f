#!lua flags=allow-oom
-- Forget a page of ids, call tokens and cancelled leases whose time is over.
--
-- KEYS[1] ids        ZSET  client-made id -> when it may be forgotten (ms)
-- KEYS[2] calls      ZSET  call token -> when it may be forgotten (ms)
-- KEYS[3] answers    HASH  call token -> answer
-- KEYS[4] cancelled  ZSET  lease of a cancelled job -> when it may be forgotten (ms)
-- ARGV[1] how many at most of each
--
-- Returns 1 if there is more else 0.
local ids, calls, answers, cancelled = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local page = tonumber(ARGV[1])
local now_ms = server_ms()

local has_more = 0
for _, key in ipairs({ids, calls, cancelled}) do
  local old = redis.call('ZRANGE', key, '-inf', now_ms, 'BYSCORE', 'LIMIT', 0, page)
  if #old > 0 then
    if key == calls then redis.call('HDEL', answers, unpack(old)) end
    redis.call('ZREM', key, unpack(old))
  end
  if #old == page then has_more = 1 end
end
return has_more
