#!lua flags=allow-oom
-- Lease ready jobs: stamp them and push them into a processing list.
--
-- KEYS[1] ready    LIST    Q itself, oldest on the right
-- KEYS[2] handed   LIST    elements that a waiting claim has moved here; older than ready
-- KEYS[3] list     LIST    list of leased jobs: the worker's own, or the shared one
-- KEYS[4] leased   ZSET    lease -> end (ms), of those with an end of their own
-- KEYS[5] workers  ZSET    session -> end of its heartbeat (ms)
-- KEYS[6] retired  ZSET    session that ended -> until when its list is watched (ms)
-- KEYS[7] later    ZSET    id -> due (ms)
-- KEYS[8] unique   HASH    unique key -> holder
-- KEYS[9] paused   STRING  exists while claims are paused
-- ARGV[1] session: prefix of the names of its leases
-- ARGV[2] 'worker' if the worker's heartbeat is the lease, 'job' if each job has its own
-- ARGV[3] nonce of this call
-- ARGV[4] lease (ms)
-- ARGV[5] how many at most
-- ARGV[6] 'now', 'waiting' if the worker waits when nothing is ready, or 'moved' to take
--         only what a blocking move has brought
-- ARGV[7] header of the entry for a bare payload, up to the id's length
-- ARGV[8] how many bytes at most, or one job
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
local beats_until, moved, count = 0, {}, redis.call('LLEN', list)
if scope == 'worker' then
  beats_until = tonumber(redis.call('ZSCORE', workers, session) or 0)
  moved = count > 0 and unseen(list, wanted) or moved
end

-- Most queues have none of these keys most of the time, so one EXISTS checks them all.
local is_plain = redis.call('EXISTS', paused, later, handed, unique, leased, retired) == 0
local due_in_ms = -1
if not is_plain then
  if redis.call('EXISTS', paused) == 1 then
    redis.call('LLEN', ready)
    put_back({ready = ready}, list, moved)
    return {now_us, 1, -1}
  end
  -- Keys of another type fail here, before the first write.
  for _, key in ipairs({leased, retired}) do redis.call('ZCARD', key) end
  redis.call('HLEN', unique)
  due_in_ms = next_in_ms(later, now_ms)
end

-- Moved elements are in the list already, so they are taken whatever their size. A
-- waiting claim moves only one job.
local elements, budget = {}, new_budget(wanted, most_bytes)
for i, element in ipairs(moved) do
  may_take(budget, element)
  elements[i] = element
end

local from_handed = (is_plain or (asked == 'moved' and scope == 'worker')) and 0
  or take_from_tail(handed, budget, elements)
local from_ready = asked == 'moved' and 0 or take_from_tail(ready, budget, elements)

-- A claim does not know which jobs the worker holds, so it acts as a heartbeat only if
-- the worker holds none. Otherwise the new leases have an end of their own until a
-- heartbeat names them.
local end_ms, has_own_end = now_ms + lease_ms, true
if scope == 'worker' and (#elements > 0 or asked == 'waiting') then
  local holds_nothing = beats_until == 0 or count == #moved
  if holds_nothing and beats_until < end_ms then
    if beats_until == 0 then redis.call('ZREM', retired, session) end
    redis.call('ZADD', workers, end_ms, session)
    beats_until = end_ms
  end
  has_own_end = beats_until ~= end_ms
end
if #elements == 0 then return {now_us, 0, due_in_ms} end

-- Prepares the lease of an element. Returns entry, kind and lease (ms) as several
-- results, which saves a table.
local function lease_one(element, number)
  local job = read_entry(element)
  if not job then
    local id = nonce .. '-bare-' .. number
    return bare_header .. string.char(#id) .. id .. element, 'p', lease_ms
  end
  -- A leased job cannot expire, so its unique key must not become free by time.
  if (job.expires_at or 0) > 0 then hold_until(unique, job, 0) end
  local kind = (job.flags % 4 ~= 0 or job.attempt > 0) and 't' or 'p'
  return with_attempt(element, job.attempt + 1), kind, job.lease_ms or lease_ms
end

local answer, leases, ends = {now_us, 0, due_in_ms}, {}, {}
for i, element in ipairs(elements) do
  -- Numbers begin at 10001, so that the leases of one claim sort by number as text.
  local number = 10000 + i
  local entry, kind, ms = lease_one(element, number)
  local name = session .. '/' .. now_us .. '/' .. nonce .. '-' .. number .. kind
  leases[i] = stamped(name, entry)
  answer[i + 3] = leases[i]
  if has_own_end then
    ends[#ends + 1] = now_ms + ms
    ends[#ends + 1] = name
  end
end

if has_own_end then redis.call('ZADD', leased, unpack(ends)) end
redis.call('LPUSH', list, unpack(leases))
for _, element in ipairs(moved) do redis.call('LREM', list, 1, element) end
if from_handed > 0 then redis.call('LTRIM', handed, 0, -from_handed - 1) end
if from_ready > 0 then redis.call('LTRIM', ready, 0, -from_ready - 1) end
return answer
