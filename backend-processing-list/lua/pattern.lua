-- How this pattern stores ready and leased jobs. Needs relq-redis's side_records.lua.
--
-- A processing list holds stamped elements: STAMP, the length of the lease's name, the
-- name, the entry. A worker's own list may also hold bare elements at its left end. A
-- blocking move put them there, and no claim has stamped them yet. Each lease has its
-- end in `leased`. If a stamped element has no end there, an older version stored it:
-- that version stored only one end for most leases of a session, so such a lease ends
-- with its session.
local STAMP = '\245RQ\1\255'
local PATTERN_KEYS = 4

-- Calls `look` with each element of a list, the newest first, until `look` returns
-- true. Reads the list in pages, so that one read stays small.
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

-- Whether the ARGV from position `first` on name every registered session. A worker may
-- have registered after the client read the sessions; then the script was not given the
-- key of that worker's list.
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

-- Reads each key, so that a key of the wrong type makes the script fail before its
-- first write.
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

-- Returns the stamped element for an entry that is passed in two parts. One expression
-- joins all parts, so that a large payload is copied once.
local function stamped(name, start, rest)
  return STAMP .. string.char(#name) .. name .. start .. rest
end

-- Returns the name of an element's lease, or nil if the element has no stamp. A client
-- may push a payload that looks like a stamp; it is recognised because a real stamp
-- names the session that owns the list.
local function name_of(list, element)
  if element:sub(1, #STAMP) ~= STAMP or #element < 7 then return nil end
  local name = element:sub(7, 6 + element:byte(6))
  local session = list:match('}:w:(.*)$')
  if session and name:sub(1, #session + 1) ~= session .. '/' then return nil end
  return name
end

-- Returns the name of an element's lease, and the position of its entry. For an element
-- without a stamp these are nil and 1.
local function read_element(list, element)
  local name = name_of(list, element)
  return name, name and 7 + #name or 1
end

-- Returns the beginning of the entry at a position in an element, as much of it as
-- `read_entry` needs.
local function head_from(element, entry_at)
  return entry_at == 1 and element or element:sub(entry_at, entry_at + LONGEST_HEAD - 1)
end

-- The maximum number of unstamped elements that one call reads. Each claim that waits
-- has moved at most one.
local MOST_UNSEEN = 1000

-- The elements at the left end of a list that no claim has stamped, oldest first.
local function unseen(list)
  local found = {}
  while #found < MOST_UNSEEN do
    local element = redis.call('LINDEX', list, #found)
    if not element or name_of(list, element) then break end
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

-- Puts the element at the right end of a list back if no claim has stamped it. Only
-- another client pushes there.
local function put_back_oldest(keys, list)
  local element = redis.call('LINDEX', list, -1)
  if not element or name_of(list, element) then return end
  redis.call('RPUSH', keys.ready, element)
  redis.call('LREM', list, -1, element)
end

-- Returns the key of the processing list for the lease at `position` in the call. The
-- lease is a whole element of that list. Finding it there is the fence, because no two
-- leases have the same name.
local function list_of(position)
  return KEYS[BOOKKEEPING_KEYS + PATTERN_KEYS + position]
end

local function check_lease(_, _, position)
  redis.call('LLEN', list_of(position))
end

local function find_leased(_, lease, position)
  local list = list_of(position)
  local name, entry_at = read_element(list, lease)
  if not name or not redis.call('LPOS', list, lease, 'RANK', -1) then return nil end
  return lease:sub(entry_at)
end

local function drop_leased(keys, lease, position)
  local list = list_of(position)
  redis.call('LREM', list, -1, lease)
  redis.call('ZREM', keys.leased, name_of(list, lease))
end

-- Whether a job is taken back now, if its lease or session ends at `end_ms`. If `how`
-- is 'left', all jobs are. A lease or session without an end has ended.
local function is_over(how, end_ms, now_ms)
  return how == 'left' or not end_ms or tonumber(end_ms) <= now_ms
end

-- Makes the job of an element ready or buries it, and counts it. Calls `recover` for a
-- job whose lease has expired. An element without a stamp goes back unchanged.
local function bring_back(keys, how, element, entry_at, counts, recover)
  local head = head_from(element, entry_at)
  local job = entry_at > 1 and read_entry(head)
  if not job then
    redis.call('RPUSH', keys.ready, element:sub(entry_at))
    counts.requeued = counts.requeued + 1
    return
  end
  local outcome = 'requeued'
  if how == 'left' then
    hold_until_expiry(keys.unique, job)
    local start = start_with_attempt(head, math.max(0, job.attempt - 1))
    make_ready(keys, job, start .. element:sub(entry_at + 8), 'front')
  else
    outcome = recover(job, element:sub(entry_at))
  end
  counts[outcome] = counts[outcome] + 1
end
