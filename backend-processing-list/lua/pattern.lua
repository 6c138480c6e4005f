-- How this pattern keeps ready and leased jobs. Needs relq-redis's side_records.lua.
--
-- A processing list holds stamped elements: STAMP, the length of the lease's name, the
-- name, the entry. In a worker's own list there may also be bare ones at its left end,
-- as a blocking move has put them there: nobody has seen those yet.
local STAMP = '\245RQ\1\255'
local PATTERN_KEYS = 4

-- Elements of a list that are looked at in one reading.
local WALK = 100

local function pattern_keys(first)
  return {
    ready = KEYS[first], leased = KEYS[first + 1], workers = KEYS[first + 2],
    retired = KEYS[first + 3],
  }
end

-- Makes sure that a notifier notifies, or that the next one to listen does.
local function notify(keys)
  if redis.call('LLEN', keys.wake) == 0 then redis.call('LPUSH', keys.wake, '1') end
end

-- Fails before the first write where a key has another type.
local function check_ready(keys)
  redis.call('LLEN', keys.ready)
  for _, key in ipairs({keys.leased, keys.workers, keys.retired}) do redis.call('ZCARD', key) end
end

local function append(keys, entries)
  redis.call('LPUSH', keys.ready, unpack(entries))
end

local function make_ready(keys, _, entry, direction)
  redis.call(direction == 'back' and 'LPUSH' or 'RPUSH', keys.ready, entry)
end

local function stamped(name, entry)
  return STAMP .. string.char(#name) .. name .. entry
end

-- The name of an element's lease and its entry; an element without a name is as it
-- was pushed. What a client pushes is no stamp, however it looks: a stamp names the
-- session whose list it is in.
local function read_element(list, element)
  if element:sub(1, #STAMP) ~= STAMP or #element < 7 then return nil, element end
  local name = element:sub(7, 6 + element:byte(6))
  local session = list:match('}:w:(.*)$')
  if session and name:sub(1, #session + 1) ~= session .. '/' then return nil, element end
  return name, element:sub(7 + #name)
end

-- The elements at the left end of a list that nobody has seen, oldest first.
local function unseen(list, most)
  local found = {}
  while #found < most do
    local element = redis.call('LINDEX', list, #found)
    if not element or read_element(list, element) then break end
    table.insert(found, 1, element)
  end
  return found
end

-- Puts elements back that nobody has seen, as they came.
local function put_back(keys, list, elements)
  for i = #elements, 1, -1 do
    redis.call('RPUSH', keys.ready, elements[i])
    redis.call('LREM', list, 1, elements[i])
  end
end

-- The elements of a list by the names of their leases, looked for from its old end on.
local function find_elements(list, is_wanted, count)
  local found, last = {}, -1
  while count > 0 do
    local page = redis.call('LRANGE', list, last - WALK + 1, last)
    for i = #page, 1, -1 do
      local name = read_element(list, page[i])
      if name and is_wanted[name] then
        found[name] = page[i]
        count = count - 1
      end
    end
    if #page < WALK then break end
    last = last - WALK
  end
  return found
end

-- A lease is an element of the list at its position, and its own fence: no two leases
-- have one name.
local function list_of(position)
  return KEYS[BOOKKEEPING_KEYS + PATTERN_KEYS + position]
end

local function check_lease(_, _, position)
  redis.call('LLEN', list_of(position))
end

local function find_leased(_, lease, position)
  local list = list_of(position)
  local name, entry = read_element(list, lease)
  if not name or not redis.call('LPOS', list, lease, 'RANK', -1) then return nil end
  return entry
end

local function drop_leased(keys, lease, position)
  local list = list_of(position)
  redis.call('LREM', list, -1, lease)
  redis.call('ZREM', keys.leased, (read_element(list, lease)))
end
