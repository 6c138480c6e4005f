-- How this pattern keeps ready and leased jobs: as entries of streams, one for each
-- priority, which stay there until they end. Needs queue-redis's books.lua.

-- The group that reads the streams, and its two consumers. The count of deliveries of
-- what `ready` holds is that of the next one, so that a doorbell may put there what it
-- hears: it delivers nothing.
local GROUP, READY, LEASED = 'relq', 'ready', 'leased'

-- The streams by letter, the most urgent first.
local LEVELS = {'u', 'n', 'p'}

-- The field of an entry that is the payload; others travel as headers.
local PAYLOAD = 'job'

local function pattern_keys(first)
  return {
    streams = {n = KEYS[first], u = KEYS[first + 1], p = KEYS[first + 2]},
    leased = KEYS[first + 3],
  }
end

-- Makes sure that a doorbell rings, or that the next one to listen does.
local function ring(keys)
  if redis.call('LLEN', keys.wake) == 0 then redis.call('LPUSH', keys.wake, '1') end
end

-- Fails before the first write where a key has another type.
local function check_ready(keys)
  for _, level in ipairs(LEVELS) do redis.call('XLEN', keys.streams[level]) end
end

-- Calls a command that needs the group of a stream. Where it is missing it is made, and
-- nothing is pending: it reads from the first entry on.
local function in_group(command, stream, ...)
  local answer = redis.pcall(command, stream, ...)
  if type(answer) ~= 'table' or not answer.err then return answer end
  if answer.err:sub(1, 7) ~= 'NOGROUP' then error(answer) end
  redis.call('XGROUP', 'CREATE', stream, GROUP, '0', 'MKSTREAM')
  return {}
end

local function add(stream, entry)
  redis.call('XADD', stream, '*', PAYLOAD, entry)
end

local function append(keys, entries)
  for _, entry in ipairs(entries) do add(keys.streams.n, entry) end
end

local function stream_of(keys, job)
  if job.priority > NORMAL then return keys.streams.u end
  return job.priority < NORMAL and keys.streams.p or keys.streams.n
end

local function sized(text)
  return struct.pack('>I4', #text) .. text
end

-- What any client has added, as an entry of a bare payload: its id is that in the
-- stream, and fields beside the payload are headers.
local function bare_entry(sid, fields)
  local payload, headers = '', {}
  if #fields == 2 then
    payload, fields = fields[2], {}
  end
  for i = 1, #fields, 2 do
    if fields[i] == PAYLOAD then
      payload = fields[i + 1]
    else
      headers[#headers + 1] = sized(fields[i]) .. sized(fields[i + 1])
    end
  end
  local header = BARE_HEADER .. string.char(#sid) .. sid
  if #headers == 0 then return header .. payload end
  local flags = string.char(header:byte(5) + 16)
  return header:sub(1, 4) .. flags .. header:sub(6) .. sized(table.concat(headers)) .. payload
end

-- The entry of what is in a stream, and its job.
local function entry_of(sid, fields)
  if #fields == 2 then
    local job = read_entry(fields[2])
    if job then return fields[2], job end
  end
  local entry = bare_entry(sid, fields)
  return entry, read_entry(entry)
end

-- Where a lease says that its job is: the stream and the id there; and its attempt.
local function place_of(keys, lease)
  local attempt, level, sid =
    lease:match('^[^/]*/[^/]*/[^/]*/%a(%d+)%.%d+/(%a):([^/]*)/')
  return keys.streams[level], sid, tonumber(attempt)
end

-- What is in a stream by that id, as `entry_of` answers it; nil where somebody else has
-- deleted it.
local function read_at(stream, sid)
  local found = redis.call('XRANGE', stream, sid, sid)[1]
  if not found then return nil end
  return entry_of(sid, found[2])
end

-- Buries what is left of a job whose entry somebody else has deleted: its id.
local function bury_deleted(keys, stream, sid, id)
  local entry = BARE_HEADER .. string.char(#id) .. id
  bury(keys, read_entry(entry), entry, 'mits entry was deleted from the stream', server_ms())
  redis.call('XACK', stream, GROUP, sid)
end

local function drop_leased(keys, lease)
  redis.call('ZREM', keys.leased, lease)
  if keys.returned == lease then return end
  local stream, sid = place_of(keys, lease)
  redis.call('XACK', stream, GROUP, sid)
  redis.call('XDEL', stream, sid)
end

-- What has no entry any more is buried here, and its lease is lost.
local function find_leased(keys, lease)
  local end_ms = redis.call('ZSCORE', keys.leased, lease)
  if not end_ms then return nil end
  local stream, sid, attempt = place_of(keys, lease)
  local entry, job = read_at(stream, sid)
  if not entry then
    bury_deleted(keys, stream, sid, lease:match('^[^/]*/[^/]*/[^/]*/[^/]*/[^/]*/(.*)$'))
    redis.call('ZREM', keys.leased, lease)
    return nil
  end
  keys.found = {lease = lease, stream = stream, sid = sid, attempt = job.attempt}
  return with_attempt(entry, attempt), end_ms
end

-- Lets an entry that was delivered so often be claimed before all that come behind it.
local function return_entry(stream, sid, deliveries)
  in_group('XCLAIM', stream, GROUP, READY, 0, sid, 'RETRYCOUNT', deliveries + 1, 'FORCE',
    'JUSTID')
end

-- A leased job, which is the one that was found last, stays where it is in its stream;
-- any other goes to the back.
local function make_ready(keys, job, entry, direction)
  if direction == 'front' then
    local found = keys.found
    local attempt = struct.unpack('>H', entry, 7)
    return_entry(found.stream, found.sid, attempt - found.attempt)
    keys.returned = found.lease
    ring(keys)
  else
    add(stream_of(keys, job), entry)
    if job.priority ~= NORMAL then ring(keys) end
  end
end
