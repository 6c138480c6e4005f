#!lua flags=no-writes
-- Read a page of a sorted set.
--
-- KEYS[1] set  ZSET  name -> score
-- ARGV[1] 'served' from the lowest score on, 'newest' from the highest score on
-- ARGV[2] maximum number of members
-- ARGV[3] score, and ARGV[4] name, behind which the page begins; neither for the first page
--
-- Returns {name, score, ...}.
--
-- Library: members
local set, order, count, score, name = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

if order == 'newest' then return members_before(set, count, score, name) end
return members_after(set, count, score, name)
