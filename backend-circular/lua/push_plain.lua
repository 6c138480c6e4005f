#!lua
-- Append jobs that use no option, and wake a worker.
--
-- KEYS[1] circle  LIST  the ring, newest on the left
-- KEYS[2] wake    LIST  at most one token, for the notifiers
-- ARGV[1...] entries, the oldest first
--
-- Returns how many elements the ring has.
--
-- Library: pattern
local keys = {circle = KEYS[1], wake = KEYS[2]}

-- If a key has another type, the script fails here, before its first write.
redis.call('LLEN', keys.wake)
append(keys, ARGV)
return redis.call('LLEN', keys.circle)
