#!lua flags=no-writes
-- Read a page of the workers that have reported.
--
-- KEYS[1] alive  ZSET  worker -> until when it is listed (ms)
-- KEYS[2] runs   HASH  worker -> its first report (ms, 6 bytes), its slots (4 bytes)
-- ARGV[1] maximum number of workers
-- ARGV[2] how long a worker is listed after a report (ms)
-- ARGV[3] time (ms), and ARGV[4] worker, behind which the page begins; neither for the
--         first page
--
-- Returns {worker, until when it is listed (ms), its value in `runs` or nil, ...}.
--
-- Library: entry, members
local alive, runs, count, listed_ms = KEYS[1], KEYS[2], tonumber(ARGV[1]), tonumber(ARGV[2])
local after_ms, name = ARGV[3], ARGV[4]
local now_ms = server_ms()

-- A worker whose time is over is not listed, and no name sorts behind the byte 255.
if not after_ms or tonumber(after_ms) <= now_ms then after_ms, name = now_ms, '\255' end
local found = members_after(alive, count, after_ms, name)
local names, listed = {}, {}
for i = 1, #found, 2 do
  -- From here on the reports are from before the clock was set back.
  if tonumber(found[i + 1]) > now_ms + listed_ms then break end
  names[#names + 1] = found[i]
end
if #names == 0 then return {} end
for i, run in ipairs(redis.call('HMGET', runs, unpack(names))) do
  listed[3 * i - 2], listed[3 * i - 1], listed[3 * i] = names[i], found[2 * i], run
end
return listed
