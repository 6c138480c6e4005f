-- How this pattern keeps ready and leased jobs: in one ring, the list `circle`, whose
-- tail is looked at first. Needs relq-redis's side_records.lua.

-- What an element in process begins with; then come the length of its lease's token,
-- the token, and the entry. No entry has such flags.
local IN_PROCESS = '\245RQ\1\128'

-- What has become of a lease, where its score in `marks` is not its end (ms).
--   RECOVERED    it ended, and the job may be taken over: its attempt counts
--   LEFT         its worker went, and the attempt does not count
--   LEFT_UNSEEN  the same, and the unique key is still held for as long as it was
--   OVER         the job is elsewhere or gone: the element is to be dropped
local RECOVERED, LEFT, LEFT_UNSEEN, OVER = 0, -1, -2, -3

local function pattern_keys(first)
  return {circle = KEYS[first], marks = KEYS[first + 1]}
end

-- Makes sure that a notifier notifies, or that the next one to listen does.
local function notify(keys)
  if redis.call('LLEN', keys.wake) == 0 then redis.call('LPUSH', keys.wake, '1') end
end

-- Fails before the first write where a key has another type.
local function check_ready(keys)
  redis.call('LLEN', keys.circle)
  redis.call('ZCARD', keys.marks)
end

local function append(keys, entries)
  redis.call('LPUSH', keys.circle, unpack(entries))
  notify(keys)
end

-- What comes back waits its turn, from wherever it comes; what is urgent is next.
local function make_ready(keys, job, entry)
  redis.call(job.priority == NORMAL and 'LPUSH' or 'RPUSH', keys.circle, entry)
  notify(keys)
end

-- The token and the entry of an element in process, or nil. Whether it is what it
-- looks like, its mark says.
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

-- `lease` is the element, or as much of it as the caller needs to be told back.
local function find_leased(keys, lease)
  local token, entry = read_in_process(lease)
  local mark = mark_of(keys, token)
  if not mark or mark <= 0 then return nil end
  return entry, mark
end

-- The element stays in the ring until it comes round: its token is marked, whatever
-- else it may look like.
local function drop_leased(keys, lease)
  redis.call('ZADD', keys.marks, OVER, (read_in_process(lease)))
end

-- Turns the ring by one element and drops it, if it is over. Answers it otherwise, and
-- its token and mark where it is in process.
local function rotate(keys)
  local element = redis.call('LMOVE', keys.circle, keys.circle, 'RIGHT', 'LEFT')
  local token = read_in_process(element)
  local mark = mark_of(keys, token)
  if mark ~= OVER then return element, token, mark end
  redis.call('LPOP', keys.circle)
  redis.call('ZREM', keys.marks, token)
end

-- How many elements are to be dropped, and whether a whole turn for them is worth it:
-- it then drops one of two that it looks at, at least.
local function litter(keys, length)
  local over = redis.call('ZCOUNT', keys.marks, OVER, OVER)
  return over, over > 0 and 2 * over >= length
end

-- Forgets marks that stand for no element, because somebody took it out by hand: those
-- in a range that are left when a script has seen to all elements with such marks.
local function forget_strays(keys, from, to)
  redis.call('ZREMRANGEBYSCORE', keys.marks, from, to)
end

-- Whole milliseconds until the next lease ends that still runs, or -1.
local function end_in_ms(keys, now_ms)
  local first = redis.call('ZRANGE', keys.marks, '(' .. now_ms, '+inf', 'BYSCORE',
    'LIMIT', 0, 1, 'WITHSCORES')[2]
  return first and math.ceil(first - now_ms) or -1
end
