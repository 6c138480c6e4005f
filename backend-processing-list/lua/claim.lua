#!lua flags=allow-oom
-- Lease ready jobs: stamp them and push them into a processing list.
--
-- KEYS[1] ready    LIST    Q itself, oldest on the right
-- KEYS[2] handed   LIST    elements that a waiting claim has moved here; older than ready
-- KEYS[3] list     LIST    list of leased jobs: the worker's own, or the shared one
-- KEYS[4] leased   ZSET    lease -> end (ms)
-- KEYS[5] workers  ZSET    session -> end of its last lease (ms)
-- KEYS[6] retired  ZSET    session that ended -> until when its list is watched (ms)
-- KEYS[7] later    ZSET    id -> due (ms)
-- KEYS[8] unique   HASH    unique key -> holder
-- KEYS[9] paused   STRING  exists while claims are paused
-- ARGV[1] session: prefix of the names of its leases
-- ARGV[2] 'worker' if the list is the worker's own, 'job' if it is the shared one
-- ARGV[3] nonce of this call
-- ARGV[4] lease (ms)
-- ARGV[5] how many at most
-- ARGV[6] 'now', 'waiting' if the worker waits when nothing is ready, or 'moved' to take
--         only what a blocking move has brought
-- ARGV[7] header of the entry for a bare payload, up to the id's length
-- ARGV[8] how many bytes at most; the first job may be larger
--
-- Returns {now (us), 1 if paused else 0, ms until the next delayed job is due or -1,
-- element, ...}, each element as it is leased now.
--
-- Library: entry, side_records, pattern, moves
local ready, handed, list, leased, workers = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local retired, later, unique, paused = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local session, scope, nonce, lease_ms = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local wanted, asked, bare_header = tonumber(ARGV[5]), ARGV[6], ARGV[7]
local most_bytes = tonumber(ARGV[8])

local time = redis.call('TIME')
local now_us = string.format('%.0f', time[1] * 1000000 + time[2])
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

-- Keys of another type fail at their first read, before the first write.
local beats_until, unstamped, count = 0, {}, redis.call('LLEN', list)
if scope == 'worker' then
  beats_until = tonumber(redis.call('ZSCORE', workers, session) or 0)
  unstamped = count > 0 and unseen(list) or unstamped
end

-- Most queues have none of these keys most of the time, so one EXISTS checks them all.
local is_plain = redis.call('EXISTS', paused, later, handed, unique, retired) == 0
local due_in_ms = -1
if not is_plain then
  if redis.call('EXISTS', paused) == 1 then
    redis.call('LLEN', ready)
    put_back({ready = ready}, list, unstamped)
    if scope == 'job' then put_back({ready = ready}, handed, unseen(handed)) end
    return {now_us, 1, -1}
  end
  -- If a key has another type, the script fails here, before its first write.
  for _, key in ipairs({leased, retired}) do redis.call('ZCARD', key) end
  redis.call('HLEN', unique)
  due_in_ms = next_in_ms(later, now_ms)
end

-- The oldest of the moved elements come first. Those that this claim does not take go
-- back, so that no stamped element comes before them in the list.
local elements, left, budget = {}, {}, new_budget(wanted, most_bytes)
for _, element in ipairs(unstamped) do
  local into = may_take(budget, element) and elements or left
  into[#into + 1] = element
end
local moved = #elements

local from_handed = (is_plain or (asked == 'moved' and scope == 'worker')) and 0
  or take_from_tail(handed, budget, elements)
local from_ready = asked == 'moved' and 0 or take_from_tail(ready, budget, elements)

-- A session is registered until its last lease ends, or until its worker has waited for
-- as long as a lease.
local function register(end_ms)
  if scope ~= 'worker' or beats_until >= end_ms then return end
  if beats_until == 0 then redis.call('ZREM', retired, session) end
  redis.call('ZADD', workers, end_ms, session)
end

if #elements == 0 then
  if asked == 'waiting' then register(now_ms + lease_ms) end
  return {now_us, 0, due_in_ms}
end

-- Prepares the lease of an element. Returns the two parts of its entry, kind and lease
-- (ms) as several results, which saves a table.
local function lease_one(element, number)
  local job = read_entry(element)
  if not job then
    local id = nonce .. '-bare-' .. number
    return bare_header .. string.char(#id) .. id, element, 'p', lease_ms
  end
  hold_while_leased(unique, job, now_ms)
  local kind = (job.flags % 4 ~= 0 or job.attempt > 0) and 't' or 'p'
  local start = start_with_attempt(element, job.attempt + 1)
  return start, element:sub(9), kind, job.lease_ms or lease_ms
end

local answer, leases, ends, last_end_ms = {now_us, 0, due_in_ms}, {}, {}, 0
-- As text, because the server would have to format the number for each job.
local usual_end = now_ms + lease_ms .. ''
for i, element in ipairs(elements) do
  -- Numbers begin at 10001, so that they all have five digits, and leases of one claim
  -- sort by number as text.
  -- Concatenating a number would format it as a fraction, which takes much longer.
  local number = string.format('%d', 10000 + i)
  local start, rest, kind, ms = lease_one(element, number)
  local name = session .. '/' .. now_us .. '/' .. nonce .. '-' .. number .. kind
  leases[i] = stamped(name, start, rest)
  answer[i + 3] = leases[i]
  ends[2 * i - 1], ends[2 * i] = ms == lease_ms and usual_end or now_ms + ms, name
  last_end_ms = math.max(last_end_ms, now_ms + ms)
end

redis.call('ZADD', leased, unpack(ends))
register(last_end_ms)
put_back({ready = ready}, list, left)
redis.call('LPUSH', list, unpack(leases))
for i = 1, moved do redis.call('LREM', list, 1, elements[i]) end
if from_handed > 0 then redis.call('LTRIM', handed, 0, -from_handed - 1) end
if from_ready > 0 then redis.call('LTRIM', ready, 0, -from_ready - 1) end
return answer
