#!lua
-- Append jobs without options, all or none.
--
-- KEYS[1] stream  STREAM  jobs of normal priority
-- ARGV[1...] entries, the oldest first
--
-- Returns how many entries the stream has.
--
-- Library: pattern
local stream = KEYS[1]

append({streams = {n = stream}}, ARGV)
return redis.call('XLEN', stream)
