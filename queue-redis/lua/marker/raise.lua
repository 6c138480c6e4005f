#!lua flags=allow-oom
-- raise_marker
-- Give a marker of an earlier format the number of the present one, before the first
-- write: other clients of that format cannot read what this one writes.
--
-- KEYS[1] STRING  the marker
-- ARGV[1] the marker that the caller has read and accepted
-- ARGV[2] the same marker with the present format
--
-- Returns 1. Returns 0, and writes nothing, if there is another marker meanwhile.
local marker, accepted, raised = KEYS[1], ARGV[1], ARGV[2]
if redis.call('GET', marker) ~= accepted then return 0 end
redis.call('SET', marker, raised)
return 1
