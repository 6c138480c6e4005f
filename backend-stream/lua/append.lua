#!lua
-- Append jobs that use no option, all or none.
--
-- KEYS[1] stream  STREAM  jobs of normal priority
-- ARGV[1...] entries, the oldest first
--
-- Returns how many entries there are.
local stream = KEYS[1]

append({streams = {n = stream}}, ARGV)
return redis.call('XLEN', stream)
