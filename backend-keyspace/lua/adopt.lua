#!lua flags=allow-oom
-- Give a lease to what some other client has renamed to a processing key, if there is
-- such a key on a page of the database.
--
-- KEYS[1] leased  ZSET  processing key -> lease end (ms)
-- ARGV[1] cursor of the page
-- ARGV[2] how many keys are a page
-- ARGV[3] lease (ms)
--
-- Returns {how many were adopted, cursor of the next page}.
local leased = KEYS[1]
local cursor, count, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local end_ms = server_ms() + lease_ms

local adopted = 0
local page = redis.call('SCAN', cursor, 'MATCH', PROCESSING .. '*', 'COUNT', count,
  'TYPE', 'string')
for _, name in ipairs(page[2]) do
  -- One that has a lease keeps it.
  adopted = adopted + redis.call('ZADD', leased, 'NX', end_ms, name)
end
return {adopted, page[1]}
