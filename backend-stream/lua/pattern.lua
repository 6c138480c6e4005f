-- How this pattern stores ready and leased jobs: as entries of streams, one stream for
-- each priority. An entry stays in its stream until its job ends. Needs relq-redis's
-- side_records.lua.

-- The group that reads the streams, and its two consumers. When an entry is given to
-- `ready`, its delivery count is set to the number of its next delivery. So a notifier
-- may read a new entry for `ready` without that counting as a delivery.
local GROUP, READY, LEASED = 'relq', 'ready', 'leased'

-- The letters of the streams, the most urgent first.
local LEVELS = {'u', 'n', 'p'}

-- The field of an entry that holds the payload. Other fields become headers.
local PAYLOAD = 'job'

local function pattern_keys(first)
  return {
    streams = {n = KEYS[first], u = KEYS[first + 1], p = KEYS[first + 2]},
    leased = KEYS[first + 3], batches = KEYS[first + 4],
  }
end

-- Returns the name of a key of batches: one of the whole queue, or with `id` one of
-- that batch. Scripts do not know in advance which batches they reach, so the name is
-- built from the declared key `batches`. All these keys are in the queue's slot.
local function batch_key(keys, what, id)
  local name = keys.batches .. ':' .. what
  return id and name .. ':' .. id or name
end

-- Makes the script fail, before its first write, if a key of this pattern has another
-- type.
local function check_ready(keys)
  for _, level in ipairs(LEVELS) do redis.call('XLEN', keys.streams[level]) end
  redis.call('ZCARD', keys.leased)
end

-- Runs a command that needs the group of a stream. If the group is missing, it is
-- created at the first entry, and nothing is pending yet.
local function in_group(command, stream, ...)
  local answer = redis.pcall(command, stream, ...)
  if type(answer) ~= 'table' or not answer.err then return answer end
  if answer.err:sub(1, 7) ~= 'NOGROUP' then error(answer) end
  redis.call('XGROUP', 'CREATE', stream, GROUP, '0', 'MKSTREAM')
  return {}
end

-- Returns the id of the last entry that the group has delivered, or nil if the stream or
-- the group does not exist.
local function last_delivered(stream)
  if redis.call('EXISTS', stream) == 0 then return nil end
  for _, fields in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
    local group = {}
    for i = 1, #fields, 2 do group[fields[i]] = fields[i + 1] end
    if group.name == GROUP then return group['last-delivered-id'] end
  end
  return nil
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

-- Converts an entry that another client added into that of a bare payload. Its job id
-- is the entry's id in the stream, and fields besides the payload are headers.
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

-- Returns an entry of a stream in relq's format, and the job parsed from it.
local function entry_of(sid, fields)
  if #fields == 2 then
    local job = read_entry(fields[2])
    if job then return fields[2], job end
  end
  local entry = bare_entry(sid, fields)
  return entry, read_entry(entry)
end

-- Returns the stream for its word in the name of a lease: a letter, or `b:` and the id
-- of a batch. For a batch, its id is the second result.
local function stream_by(keys, word)
  local batch = word:match('^b:(.*)$')
  if batch then return batch_key(keys, 'pieces', batch), batch end
  return keys.streams[word]
end

-- Returns where the job of a lease is: its stream, the entry's id there, the attempt,
-- and the batch of a piece. Returns nil if the name is not a lease of relq's.
local function place_of(keys, lease)
  local attempt, word, sid =
    lease:match('^[^/]*/[^/]*/[^/]*/%a(%d+)%.%d+/([^/]*):([^/:]*)/')
  if not sid then return nil end
  local stream, batch = stream_by(keys, word)
  return stream, sid, tonumber(attempt), batch
end

local function job_of(lease)
  return lease:match('^[^/]*/[^/]*/[^/]*/[^/]*/[^/]*/(.*)$')
end

-- Reads the entry with this id in a stream, as `entry_of` returns it. Returns nil if
-- the entry was deleted.
local function read_at(stream, sid)
  local found = redis.call('XRANGE', stream, sid, sid)[1]
  if not found then return nil end
  return entry_of(sid, found[2])
end

-- Whether an entry that another client added has fields, and none is the payload.
local function lacks_payload(fields)
  if #fields == 2 then return false end
  for i = 1, #fields, 2 do
    if fields[i] == PAYLOAD then return false end
  end
  return true
end

-- Returns an entry for a job whose entry was deleted. Only its id is known.
local function entry_of_deleted(keys, id)
  local entry = BARE_HEADER .. string.char(#id) .. id
  -- A remembered id stays remembered, so that the end of the job settles its followers.
  if type(redis.pcall('ZSCORE', keys.ids, id)) == 'string' then
    entry = entry:sub(1, 4) .. string.char(entry:byte(5) + 1) .. entry:sub(6)
  end
  -- The deleted entry said for how long the result of the job is kept. From its end on it is
  -- kept as long as an id.
  if redis.pcall('HEXISTS', results_key(keys, 'results'), id) == 1 then
    local keeping = string.char(entry:byte(6) + 64)
    entry = entry:sub(1, 5) .. keeping .. entry:sub(7) .. struct.pack('>I8', MEMORY_MS)
  end
  return entry
end

-- Buries a job whose entry was deleted.
local function bury_deleted(keys, stream, sid, id)
  local entry, now_ms = entry_of_deleted(keys, id), server_ms()
  bury(keys, read_entry(entry), entry, 'mits entry was deleted from the stream', now_ms)
  redis.call('XACK', stream, GROUP, sid)
end

-- Makes a delivered entry ready again, before all entries that were never delivered.
local function return_entry(stream, sid, deliveries)
  in_group('XCLAIM', stream, GROUP, READY, 0, sid, 'RETRYCOUNT', deliveries + 1, 'FORCE',
    'JUSTID')
end

-- Makes ready the leased job that the last call of `find_leased` found. Its entry stays
-- in its stream.
local function return_found(keys, entry)
  local found = keys.found
  local attempt = struct.unpack('>H', entry, 7)
  return_entry(found.stream, found.sid, attempt - found.job.attempt)
  keys.outcome = 'returned'
  notify(keys)
end

-- Removes an empty stream. Streams of other priorities than normal exist only while
-- they hold an entry.
local function remove_empty(stream)
  if redis.call('XLEN', stream) == 0 and redis.call('XPENDING', stream, GROUP)[1] == 0 then
    redis.call('UNLINK', stream)
  end
end
