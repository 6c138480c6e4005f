#!lua flags=allow-oom
-- Let claims go on.
--
-- KEYS[1] paused  STRING  there while claims are paused
-- KEYS[2] wake    LIST    at most one token, for the doorbells
--
-- Returns 1 if the queue was paused, else 0.
local paused, wake = KEYS[1], KEYS[2]

local was_paused = redis.call('DEL', paused)
ring(wake)
return was_paused
