-- How this pattern stores ready and leased jobs: in one ring, the list `circle`. Claims
-- read it from the tail. Needs relq-redis's side_records.lua.

-- The first bytes of an element in process, whose job is leased. The length of the
-- lease's token, the token and the entry follow. An entry has its flags in the fifth
-- byte, and no entry has the flags 128.
local IN_PROCESS = '\245RQ\1\128'

-- The score of a running lease in `marks` is its end (ms). Other leases have as score:
--   RECOVERED    expired; the job may be taken over, and its attempt counts
--   LEFT         its worker was released; the attempt does not count
--   LEFT_UNSEEN  as LEFT, but the job still holds its unique key as a leased job does
--   OVER         the job ended or moved; the element must be dropped
local RECOVERED, LEFT, LEFT_UNSEEN, OVER = 0, -1, -2, -3

local function pattern_keys(first)
  return {circle = KEYS[first], marks = KEYS[first + 1]}
end

-- Fails before the first write if a key has the wrong type.
local function check_ready(keys)
  redis.call('LLEN', keys.circle)
  redis.call('ZCARD', keys.marks)
end

local function append(keys, entries)
  redis.call('LPUSH', keys.circle, unpack(entries))
  notify(keys)
end

-- A job of normal priority that becomes ready again goes to the end of the queue. An
-- urgent job is served next.
local function make_ready(keys, job, entry)
  redis.call(job.priority == NORMAL and 'LPUSH' or 'RPUSH', keys.circle, entry)
  notify(keys)
end

-- Returns the token of an element in process and the position of its entry, or nil. A
-- client may have pushed an element that only looks like one: then no mark has its token.
local function read_in_process(element)
  if element:sub(1, 5) ~= IN_PROCESS then return nil end
  local entry_at = 7 + (element:byte(6) or 0)
  if entry_at == 7 or #element < entry_at - 1 then return nil end
  return element:sub(7, entry_at - 1), entry_at
end

-- Returns the part of an element from a position on.
local function element_from(element, at)
  return at == 1 and element or element:sub(at)
end

-- Returns the beginning of the entry at a position in an element, as much of it as
-- `read_entry` needs.
local function head_from(element, entry_at)
  return entry_at == 1 and element or element:sub(entry_at, entry_at + LONGEST_HEAD - 1)
end

-- Returns the element in process for an entry that is passed in two parts. One expression
-- joins all parts, so that a large payload is copied once.
local function in_process(token, start, rest)
  return IN_PROCESS .. string.char(#token) .. token .. start .. rest
end

local function mark_of(keys, token)
  return token and tonumber(redis.call('ZSCORE', keys.marks, token))
end

-- Returns the position of the entry in the element of a leased job, and the lease end
-- (ms), or nil if the lease is lost. `lease` is the element, or a beginning of it that
-- contains the token.
local function find_running(keys, lease)
  local token, entry_at = read_in_process(lease)
  local mark = mark_of(keys, token)
  if not mark or mark <= 0 then return nil end
  return entry_at, mark
end

-- Returns the entry and the lease end (ms) of a leased job, or nil if the lease is lost.
local function find_leased(keys, lease)
  local entry_at, mark = find_running(keys, lease)
  if not entry_at then return nil end
  return lease:sub(entry_at), mark
end

-- Ends a lease by changing its mark. The element stays in the ring until a rotation
-- drops it.
local function drop_leased(keys, lease)
  redis.call('ZADD', keys.marks, OVER, (read_in_process(lease)))
end

-- Rotates the ring by one element. Drops the element if its job has ended; otherwise
-- returns it, and if it is in process also its token and mark. The fourth result is the
-- bytes of the element.
local function rotate(keys)
  local element = redis.call('LMOVE', keys.circle, keys.circle, 'RIGHT', 'LEFT')
  local token = read_in_process(element)
  local mark = mark_of(keys, token)
  if mark ~= OVER then return element, token, mark, #element end
  redis.call('LPOP', keys.circle)
  redis.call('ZREM', keys.marks, token)
  return nil, nil, nil, #element
end

-- Returns how many elements must be dropped, and whether they alone are worth a whole
-- rotation: they are if they are at least half of all elements.
local function litter(keys, length)
  local over = redis.call('ZCOUNT', keys.marks, OVER, OVER)
  return over, over > 0 and 2 * over >= length
end

-- Removes the marks in a range of scores. The caller has handled all elements with such
-- marks, so the marks that are left belong to elements that a client removed by hand.
local function forget_strays(keys, from, to)
  redis.call('ZREMRANGEBYSCORE', keys.marks, from, to)
end

-- Returns how many elements one call may rotate: as many as have about STEP_BYTES in sum,
-- if all are as long as the element at the tail.
local function most_rotations(keys, most)
  local tail = redis.call('LINDEX', keys.circle, -1) or ''
  return math.min(most, 1 + math.floor(STEP_BYTES / math.max(1, #tail)))
end

-- Rotates until STEP_BYTES, but at most `most` elements. Returns how many it looked at, and
-- how many of these it did not drop.
local function rotate_many(keys, most)
  local looked, kept, bytes = 0, 0, 0
  while looked < most and bytes < STEP_BYTES do
    local element, _, _, element_bytes = rotate(keys)
    looked, bytes = looked + 1, bytes + element_bytes
    if element then kept = kept + 1 end
  end
  return looked, kept
end

-- Rotates up to `most` elements, to drop those of ended jobs. A whole rotation keeps
-- the order, and so does a partial one if no job waits. If the elements are too large for
-- a whole rotation while a job waits, those that stay are put back. Returns whether
-- another call should continue.
local function drop_litter(keys, most)
  local length = redis.call('LLEN', keys.circle)
  local over, is_littered = litter(keys, length)
  if over == 0 then return false end
  most = most_rotations(keys, most)
  local is_idle = length <= over + redis.call('ZCOUNT', keys.marks, '(0', '+inf')
  if length > most and not (is_littered and is_idle) then return false end
  local looked, kept = rotate_many(keys, math.min(length, most))
  if looked == length then
    forget_strays(keys, OVER, OVER)
    return false
  end
  if not is_idle then
    for _ = 1, kept do redis.call('LMOVE', keys.circle, keys.circle, 'LEFT', 'RIGHT') end
  end
  return is_littered and is_idle and kept < looked
end

-- Whole milliseconds until the next running lease ends, or -1.
local function end_in_ms(keys, now_ms)
  local first = redis.call('ZRANGE', keys.marks, '(' .. now_ms, '+inf', 'BYSCORE',
    'LIMIT', 0, 1, 'WITHSCORES')[2]
  return first and math.ceil(first - now_ms) or -1
end
