-- How this pattern stores ready and leased jobs. Needs relq-redis's side_records.lua.

local MINUTE_MS = 60000

local function pattern_keys(first)
  return {
    ready = KEYS[first], held = KEYS[first + 1], ends = KEYS[first + 2],
    minutes = KEYS[first + 3],
  }
end

-- Fails before the first write if a key has the wrong type.
local function check_ready(keys)
  redis.call('LLEN', keys.ready)
  redis.call('HLEN', keys.held)
  redis.call('HLEN', keys.ends)
  redis.call('ZCARD', keys.minutes)
end

local function append(keys, entries)
  redis.call('LPUSH', keys.ready, unpack(entries))
end

local function make_ready(keys, job, entry, direction)
  redis.call(direction == 'back' and 'LPUSH' or 'RPUSH', keys.ready, entry)
end

local function minute_of(ms)
  return math.floor(ms / MINUTE_MS)
end

-- Returns the name of the set of a minute: the leases that recovery looks at in that
-- minute. The server's clock decides which minutes a script reaches, so the name is
-- built from the declared key `minutes`. All these keys are in the queue's slot.
local function set_of(keys, minute)
  return keys.minutes .. ':' .. string.format('%.0f', minute)
end

-- Adds a lease to the set of a minute, so that recovery looks at the lease then.
local function look_in(keys, minute, lease)
  redis.call('SADD', set_of(keys, minute), lease)
  redis.call('ZADD', keys.minutes, minute, string.format('%.0f', minute))
end

-- Returns when a lease ends (ms), or nil if it is lost. If another client has
-- overwritten the end with text, the lease counts as ended.
local function end_of(keys, lease)
  local end_ms = redis.call('HGET', keys.ends, lease)
  return end_ms and (tonumber(end_ms) or 0) or nil
end

local function find_leased(keys, lease)
  local end_ms = end_of(keys, lease)
  if not end_ms then return nil end
  return redis.call('HGET', keys.held, lease) or '', end_ms
end

-- A lease that was extended is in the set of an earlier minute. It stays there until
-- that set is looked at.
local function drop_leased(keys, lease)
  local end_ms = end_of(keys, lease)
  redis.call('HDEL', keys.held, lease)
  redis.call('HDEL', keys.ends, lease)
  if end_ms then redis.pcall('SREM', set_of(keys, minute_of(end_ms)), lease) end
end
