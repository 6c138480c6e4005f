#!lua flags=allow-oom
-- write_marker
-- Write whose a queue is, before its first write. What is there already stays.
--
-- KEYS[1...n] STRING  what says whose it is: the marker first
-- KEYS[n+1...]        all other keys that a queue of any pattern may have
-- ARGV[1] 'first', or 'again' when the caller knows that the queue is its own
-- ARGV[2...] the n values
--
-- Returns the n values that are there now, or false when there is no marker, but other
-- keys, and the caller does not know whose they are: then nothing was written.
local word, count = ARGV[1], #ARGV - 1

local values, is_other = {}, false
for i = 1, count do
  values[i] = redis.call('GET', KEYS[i]) or ARGV[i + 1]
  is_other = is_other or values[i] ~= ARGV[i + 1]
end
if is_other then return values end
local is_marked = redis.call('EXISTS', KEYS[1]) == 1
if not is_marked and word == 'first' and redis.call('EXISTS', unpack(KEYS, 2)) > 0 then
  return false
end
for i = 1, count do redis.call('SETNX', KEYS[i], ARGV[i + 1]) end
return values
