-- Reading and rewriting entries. The layout is told in queue-redis, entry.rs.
local NORMAL = 5

-- A whole entry's fields, or nil when it does not keep to the layout.
local function read_entry(entry)
  if #entry < 12 or entry:sub(1, 4) ~= '\245RQ\1' then return nil end
  local flags, priority, attempt, max_attempts, id_bytes =
    struct.unpack('>BBHHB', entry, 5)
  local at = 12 + id_bytes
  if flags >= 128 or priority > 9 or max_attempts == 0 or id_bytes == 0 then return nil end
  if #entry < at - 1 then return nil end
  local job = {
    flags = flags, priority = priority, attempt = attempt, max_attempts = max_attempts,
    id = entry:sub(12, at - 1), is_indexed = flags % 2 == 1,
  }
  if bit.band(flags, 4) ~= 0 then
    if #entry < at + 7 then return nil end
    job.expires_at, job.expires_offset = struct.unpack('>I8', entry, at), at
    at = at + 8
  end
  if bit.band(flags, 8) ~= 0 then
    if #entry < at + 7 then return nil end
    job.lease_ms = struct.unpack('>I8', entry, at)
    at = at + 8
  end
  if bit.band(flags, 2) ~= 0 then
    if #entry < at or #entry < at + entry:byte(at) then return nil end
    job.unique_key = entry:sub(at + 1, at + entry:byte(at))
  end
  return job
end

-- The entry with another count of deliveries.
local function with_attempt(entry, attempt)
  return entry:sub(1, 6) .. struct.pack('>H', attempt) .. entry:sub(9)
end

-- The entry with another time of expiry, 0 for never.
local function with_expiry(entry, job, expires_at)
  local at = job.expires_offset
  return entry:sub(1, at - 1) .. struct.pack('>I8', expires_at) .. entry:sub(at + 8)
end

-- The entry with another id, which was not the client's choice.
local function with_id(entry, job, id)
  local flags = job.flags - (job.is_indexed and 1 or 0)
  return entry:sub(1, 4) .. string.char(flags) .. entry:sub(6, 10) .. string.char(#id) .. id
    .. entry:sub(12 + #job.id)
end

-- What a unique key holds: when its holder's claim to it ends (0 never), and who.
local function unique_holder(id, expires_at)
  return string.format('%.0f ', expires_at or 0) .. id
end

-- Whole milliseconds: a sorted set keeps a score with a fraction as a long text.
local function server_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
