-- How this pattern stores ready and leased jobs: in one ring, the list `circle`. Claims
-- read it from the tail. Needs relq-redis's side_records.lua.

-- The first bytes of an element in process. Then follow the length of its lease's
-- token, the token, and the entry. No entry has these flags.
local IN_PROCESS = '\245RQ\1\128'

-- The state of a lease whose score in `marks` is not its end (ms).
--   RECOVERED    expired; the job may be taken over, and its attempt counts
--   LEFT         its worker was released; the attempt does not count
--   LEFT_UNSEEN  as LEFT, and the unique key is still held as for a leased job
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

-- The token and the entry of an element in process, or nil. An element that only looks
-- like one has no mark.
local function read_in_process(element)
  if element:sub(1, 5) ~= IN_PROCESS then return nil end
  local entry_at = 7 + (element:byte(6) or 0)
  if entry_at == 7 or #element < entry_at - 1 then return nil end
  return element:sub(7, entry_at - 1), element:sub(entry_at)
end

local function in_process(token, entry)
  return IN_PROCESS .. string.char(#token) .. token .. entry
end

local function mark_of(keys, token)
  return token and tonumber(redis.call('ZSCORE', keys.marks, token))
end

-- `lease` is the element, or as much of it as the caller stores.
local function find_leased(keys, lease)
  local token, entry = read_in_process(lease)
  local mark = mark_of(keys, token)
  if not mark or mark <= 0 then return nil end
  return entry, mark
end

-- The element stays in the ring until a rotation meets it. Here only its token is
-- marked.
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

-- How many elements must be dropped, and whether a whole rotation for them is worth it:
-- it is if at least half of the elements would be dropped.
local function litter(keys, length)
  local over = redis.call('ZCOUNT', keys.marks, OVER, OVER)
  return over, over > 0 and 2 * over >= length
end

-- Forgets marks whose element a client removed by hand: the marks in a score range that
-- are left after a script handled all elements with such marks.
local function forget_strays(keys, from, to)
  redis.call('ZREMRANGEBYSCORE', keys.marks, from, to)
end

-- How many elements one call rotates: as many as have about STEP_BYTES if all are as
-- long as the one at the tail.
local function most_rotations(keys, most)
  local tail = redis.call('LINDEX', keys.circle, -1) or ''
  return math.min(most, 1 + math.floor(STEP_BYTES / math.max(1, #tail)))
end

-- Rotates up to `most` elements, to drop those of ended jobs. A whole rotation keeps the
-- order, and so does a partial one if no job waits. Returns whether another call should
-- continue.
local function drop_litter(keys, most)
  local length = redis.call('LLEN', keys.circle)
  local over, is_littered = litter(keys, length)
  if over == 0 then return false end
  most = most_rotations(keys, most)
  local is_idle = length <= redis.call('ZCARD', keys.marks)
  if length > most and not (is_littered and is_idle) then return false end
  for _ = 1, math.min(length, most) do rotate(keys) end
  if length <= most then forget_strays(keys, OVER, OVER) end
  return length > most and redis.call('LLEN', keys.circle) < length
end

-- Whole milliseconds until the next running lease ends, or -1.
local function end_in_ms(keys, now_ms)
  local first = redis.call('ZRANGE', keys.marks, '(' .. now_ms, '+inf', 'BYSCORE',
    'LIMIT', 0, 1, 'WITHSCORES')[2]
  return first and math.ceil(first - now_ms) or -1
end
