#!lua flags=allow-oom
-- write_marker
-- Write the owner of a queue before its first write. Existing values stay.
--
-- KEYS[1...n] STRING  the keys that name the owner: the marker first
-- KEYS[n+1...]        all other keys that a queue of any pattern may have
-- ARGV[1] 'first', or 'again' when the caller knows that the queue is its own
-- ARGV[2...] the n values for the keys that name the owner
--
-- Returns the n values that are stored now, or false if other keys exist without a
-- marker and the caller does not know their owner: then nothing was written.
local word, count = ARGV[1], #ARGV - 1

local values, is_own = {}, true
for i = 1, count do
  values[i] = redis.call('GET', KEYS[i]) or ARGV[i + 1]
  is_own = is_own and values[i] == ARGV[i + 1]
end
if not is_own then return values end
local is_marked = redis.call('EXISTS', KEYS[1]) == 1
if not is_marked and word == 'first' and redis.call('EXISTS', unpack(KEYS, 2)) > 0 then
  return false
end
for i = 1, count do redis.call('SETNX', KEYS[i], ARGV[i + 1]) end
return values
