#!lua flags=allow-oom
-- Take back entries that foreign consumers of the group hold for too long, and remove
-- foreign consumers that hold nothing. Also take back entries that workers hold without
-- a lease.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] how many entries at most; fewer are taken when they are large
-- ARGV[2] how long a consumer may be idle (ms)
--
-- Returns {how many jobs were made ready, how many were buried, 1 if entries may be left
-- else 0, -1}. The reply has the form of recover.lua's, whose last value is the time
-- until the next lease expires; this script does not read it.
--
-- Library: entry, side_records, pattern, batch/records, moves
local keys = bind_keys()
local page, idle_ms = tonumber(ARGV[1]), tonumber(ARGV[2])
local step = new_step(page)

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
local requeued, buried = 0, 0

-- Entries of foreign consumers have no lease, so their idle time decides. The server
-- keeps it.
local function take_from(stream, consumer)
  local pending =
    redis.call('XPENDING', stream, GROUP, 'IDLE', idle_ms, '-', '+', page, consumer)
  for _, one in ipairs(pending) do
    local sid, deliveries = one[1], one[4]
    if not has_room(step) then break end
    local entry = read_at(stream, sid)
    count_job(step, entry)
    if entry then
      return_entry(stream, sid, deliveries)
      requeued = requeued + 1
    else
      bury_deleted(keys, stream, sid, sid)
      buried = buried + 1
    end
  end
end

-- Deleting a consumer drops its pending entries, so only a consumer without any is
-- deleted.
local function visit(stream, name, pending, consumer_idle_ms)
  if pending > 0 then
    take_from(stream, name)
  elseif consumer_idle_ms > idle_ms then
    redis.call('XGROUP', 'DELCONSUMER', stream, GROUP, name)
  end
end

for _, level in ipairs(LEVELS) do
  local stream = keys.streams[level]
  local consumers = redis.pcall('XINFO', 'CONSUMERS', stream, GROUP)
  for _, consumer in ipairs(consumers.err and {} or consumers) do
    local name, pending, consumer_idle_ms = consumer[2], consumer[4], consumer[6]
    if name ~= READY and name ~= LEASED then visit(stream, name, pending, consumer_idle_ms) end
  end
  local returned, gone = return_unleased(keys, stream, page, step)
  for _, sid in ipairs(gone) do bury_deleted(keys, stream, sid, sid) end
  requeued, buried = requeued + returned, buried + #gone
end
if requeued > 0 then notify(keys) end
return {requeued, buried, has_room(step) and 0 or 1, -1}
