#!lua flags=allow-oom
-- touch_marker
-- Write the marker of a queue again, with the value that it has.
--
-- KEYS[1] STRING  the marker
--
-- Returns 1. Returns 0, and writes nothing, if there is no marker.
local value = redis.call('GET', KEYS[1])
if not value then return 0 end
redis.call('SET', KEYS[1], value)
return 1
