#!lua flags=allow-oom
-- Store that a worker runs no longer.
--
-- KEYS[1] alive  ZSET  worker -> until when it is listed (ms)
-- KEYS[2] runs   HASH  worker -> its first report, its slots
-- ARGV[1] worker
--
-- Returns 1 if the worker had reported, else 0.
local alive, runs, worker = KEYS[1], KEYS[2], ARGV[1]

-- If a key has another type, the script fails here, before its first write.
redis.call('ZCARD', alive)
redis.call('HDEL', runs, worker)
return redis.call('ZREM', alive, worker)
