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

local page = redis.call('SCAN', cursor, 'MATCH', PROCESSING .. '*', 'COUNT', count,
  'TYPE', 'string')
local words = {}
for i, name in ipairs(page[2]) do words[2 * i - 1], words[2 * i] = end_ms, name end
-- A key of another type fails here, before the first write.
redis.call('ZCARD', leased)
-- A client's time to live would end the job in the hands of its worker.
for _, name in ipairs(page[2]) do redis.call('PERSIST', name) end
-- One that has a lease keeps it.
local adopted = #words > 0 and redis.call('ZADD', leased, 'NX', unpack(words)) or 0
return {adopted, page[1]}
