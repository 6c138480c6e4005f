#!lua flags=allow-oom
-- Let another doorbell ring, because nobody heard this one.
--
-- KEYS[1] wake  LIST  at most one token, for the doorbells
--
-- Returns 1.
local keys = {wake = KEYS[1]}

ring(keys)
return 1
