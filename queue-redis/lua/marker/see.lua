-- see_marker
-- Read the owner of a queue.
--
-- KEYS[1...n] STRING  the keys that name the owner: the marker first
-- KEYS[n+1...]        all other keys that a queue of any pattern may have
-- ARGV[1] n, the number of keys that name the owner
--
-- Returns {how many of the other keys exist, {each of the n values, or false}, the
-- server's TIME}.
local count = tonumber(ARGV[1])

local values = {}
for i = 1, count do values[i] = redis.call('GET', KEYS[i]) end
return {redis.call('EXISTS', unpack(KEYS, count + 1)), values, redis.call('TIME')}
