#!lua flags=no-writes
-- Find a page of expired leases.
--
-- KEYS[1] leased  ZSET  processing key -> lease end (ms)
-- ARGV[1] how many at most
--
-- Returns {1 if there is more else 0, ms until the next lease expires or -1, processing
-- key, ...}, the lease that expired first at the front.
--
-- Library: entry
local leased = KEYS[1]
local page = tonumber(ARGV[1])
local now_ms = server_ms()

local overdue =
  redis.call('ZRANGE', leased, '-inf', now_ms, 'BYSCORE', 'LIMIT', 0, page + 1)
local next_end = redis.call('ZRANGE', leased, '(' .. now_ms, '+inf', 'BYSCORE',
  'LIMIT', 0, 1, 'WITHSCORES')[2]
local answer = {#overdue > page and 1 or 0, next_end and math.ceil(next_end - now_ms) or -1}
for i = 1, math.min(#overdue, page) do answer[i + 2] = overdue[i] end
return answer
