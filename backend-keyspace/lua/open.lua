#!lua flags=allow-oom
-- Make the database that of one queue, if it is no other's.
--
-- KEYS[1] database  STRING  the name of the queue whose database it is
-- ARGV[1] the queue's name
--
-- Returns the name of the queue whose database it is now.
local database = KEYS[1]
local queue = ARGV[1]

redis.call('SETNX', database, queue)
return redis.call('GET', database)
