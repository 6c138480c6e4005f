#!lua
-- Store that a worker runs.
--
-- KEYS[1] alive  ZSET  worker -> until when it is listed (ms)
-- KEYS[2] runs   HASH  worker -> its first report (ms, 6 bytes), its slots (4 bytes)
-- ARGV[1] worker
-- ARGV[2] slots
-- ARGV[3] how long it is listed after a report (ms)
--
-- Returns 'stored'.
--
-- Library: entry
local alive, runs = KEYS[1], KEYS[2]
local worker, slots, listed_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
local stored = redis.call('HGET', runs, worker) or ''
local listed_until = tonumber(redis.call('ZSCORE', alive, worker) or 0)
-- A report from before the clock was set back does not count.
if listed_until > now_ms + listed_ms then listed_until = 0 end
local since_ms = now_ms
if listed_until > now_ms and #stored >= 6 then since_ms = struct.unpack('>I6', stored) end
local run = struct.pack('>I6I4', since_ms, slots)
if run ~= stored then redis.call('HSET', runs, worker, run) end
redis.call('ZADD', alive, now_ms + listed_ms, worker)
return 'stored'
