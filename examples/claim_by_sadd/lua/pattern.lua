-- How this pattern stores ready and leased jobs. Needs relq-redis's side_records.lua.

-- The first bytes of an id in the list. No text begins with them, so a text that a
-- client pushes as a payload without relq is not mistaken for an id.
local ID_MARK = '\245RQ\1'

local function pattern_keys(first)
  return {
    ready = KEYS[first], bodies = KEYS[first + 1], processing = KEYS[first + 2],
    leased = KEYS[first + 3],
  }
end

-- Fails before the first write if a key has the wrong type.
local function check_ready(keys)
  redis.call('LLEN', keys.ready)
  redis.call('HLEN', keys.bodies)
  redis.call('HLEN', keys.processing)
  redis.call('ZCARD', keys.leased)
end

-- Returns a set of those ids that a ready or leased job has: each such job has a body.
local function ready_among(keys, ids)
  local has_body = {}
  for _, id in ipairs(ids) do
    has_body[id] = redis.call('HEXISTS', keys.bodies, id) == 1
  end
  return has_body
end

-- The ids of the jobs that this call has made ready. When their leases are dropped,
-- their bodies must stay.
local ready_again = {}

local function make_ready(keys, job, entry, direction)
  redis.call('HSET', keys.bodies, job.id, entry)
  redis.call(direction == 'back' and 'LPUSH' or 'RPUSH', keys.ready, ID_MARK .. job.id)
  ready_again[job.id] = true
end

local function append(keys, entries)
  for _, entry in ipairs(entries) do make_ready(keys, read_entry(entry), entry, 'back') end
end

-- Returns the id of the job that a lease holds. lease.rs documents the name of a lease.
local function id_in(lease)
  return lease:match('^[^/]*/[^/]*/[^/]*/(.*)$') or ''
end

local function find_leased(keys, lease)
  local end_ms = redis.call('ZSCORE', keys.leased, lease)
  if not end_ms then return nil end
  return redis.call('HGET', keys.bodies, id_in(lease)) or '', end_ms
end

local function drop_leased(keys, lease)
  local id = id_in(lease)
  if not ready_again[id] then redis.call('HDEL', keys.bodies, id) end
  redis.call('HDEL', keys.processing, id)
  redis.call('ZREM', keys.leased, lease)
end
