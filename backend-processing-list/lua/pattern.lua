-- How this pattern stores ready and leased jobs. Needs relq-redis's side_records.lua.
--
-- A processing list holds stamped elements: STAMP, the length of the lease's name, the
-- name, the entry. A worker's own list may also hold bare elements at its left end. A
-- blocking move put them there, and no claim has stamped them yet.
local STAMP = '\245RQ\1\255'
local PATTERN_KEYS = 4

-- Calls `look` with each element of a list, the newest first, until it returns true.
-- The elements are read page by page.
local function walk(list, look)
  local budget, page, page_bytes, first = new_budget(100, STEP_BYTES), nil, 0, 0
  repeat
    page = next_page(budget, page, page_bytes)
    local found = redis.call('LRANGE', list, first, first + page - 1)
    page_bytes = 0
    for _, element in ipairs(found) do
      page_bytes = page_bytes + #element
      if look(element) then return end
    end
    first = first + page
  until #found < page
end

-- Whether ARGV, from `first` on, names every registered session. A worker may have
-- registered since the client read the sessions; its list is not among the keys then.
local function are_sessions_known(workers, retired, first)
  local is_known = {}
  for i = first, #ARGV do is_known[ARGV[i]] = true end
  for _, key in ipairs({workers, retired}) do
    for _, session in ipairs(redis.call('ZRANGE', key, 0, -1)) do
      if not is_known[session] then return false end
    end
  end
  return true
end

local function pattern_keys(first)
  return {
    ready = KEYS[first], leased = KEYS[first + 1], workers = KEYS[first + 2],
    retired = KEYS[first + 3],
  }
end

-- Fails before the first write if a key has another type.
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

-- The name of an element's lease and its entry. An element without a stamp is returned
-- as it was pushed. A client may push a payload that looks like a stamp; it is
-- recognised because a real stamp names the session that owns the list.
local function read_element(list, element)
  if element:sub(1, #STAMP) ~= STAMP or #element < 7 then return nil, element end
  local name = element:sub(7, 6 + element:byte(6))
  local session = list:match('}:w:(.*)$')
  if session and name:sub(1, #session + 1) ~= session .. '/' then return nil, element end
  return name, element:sub(7 + #name)
end

-- The elements at the left end of a list that no claim has stamped, oldest first.
local function unseen(list, most)
  local found = {}
  while #found < most do
    local element = redis.call('LINDEX', list, #found)
    if not element or read_element(list, element) then break end
    table.insert(found, 1, element)
  end
  return found
end

-- Puts unstamped elements back into the ready list, unchanged.
local function put_back(keys, list, elements)
  for i = #elements, 1, -1 do
    redis.call('RPUSH', keys.ready, elements[i])
    redis.call('LREM', list, 1, elements[i])
  end
end

-- Finds elements of a list by the names of their leases, the newest first, as many as
-- the step has room for. Also returns how many were not found.
local function find_elements(list, is_wanted, count, step)
  local found = {}
  walk(list, function(element)
    local name = read_element(list, element)
    if name and is_wanted[name] then
      found[name] = element
      count = count - 1
      count_job(step, element)
    end
    return count == 0 or not has_room(step)
  end)
  return found, count
end

-- A lease is an element of the list at its position. The element is also the fence,
-- because no two leases have the same name.
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
