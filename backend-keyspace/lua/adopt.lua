#!lua flags=allow-oom
-- Give a lease to each key on a page of the database that another client has renamed to
-- a processing key.
--
-- KEYS[1] leased  ZSET  processing key -> lease end (ms)
-- ARGV[1] cursor of the page
-- ARGV[2] how many keys a page has
-- ARGV[3] lease (ms)
--
-- Returns {how many keys were adopted, cursor of the next page}.
--
-- Library: entry, pattern
local leased = KEYS[1]
local cursor, count, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local end_ms = server_ms() + lease_ms

local page = redis.call('SCAN', cursor, 'MATCH', PROCESSING .. '*', 'COUNT', count,
  'TYPE', 'string')
local words = {}
for i, name in ipairs(page[2]) do words[2 * i - 1], words[2 * i] = end_ms, name end
-- If a key has another type, the script fails here, before its first write.
redis.call('ZCARD', leased)
-- A time to live that a client set would delete the job while a worker holds it.
for _, name in ipairs(page[2]) do redis.call('PERSIST', name) end
-- A key that already has a lease keeps it.
local adopted = #words > 0 and redis.call('ZADD', leased, 'NX', unpack(words)) or 0
return {adopted, page[1]}
