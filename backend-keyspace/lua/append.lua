#!lua
-- Store plain jobs: all of them, or none when an id is taken.
--
-- KEYS[1] wake  LIST  at most one token, for the notifiers
-- KEYS[2...]    STRING  the jobs' item keys
-- ARGV[1...] the jobs' entries, in the order of the keys
--
-- Returns 1 if the jobs are stored, else 0.
--
-- Library: side_records
local keys = {wake = KEYS[1]}

redis.call('LLEN', keys.wake)
local words = {}
for i, entry in ipairs(ARGV) do words[2 * i - 1], words[2 * i] = KEYS[i + 1], entry end
if redis.call('MSETNX', unpack(words)) == 0 then return 0 end
notify(keys)
return 1
