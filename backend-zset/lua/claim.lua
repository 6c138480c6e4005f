#!lua flags=allow-oom
-- Lease ready jobs: urgent ones, then those of normal priority, then the rest.
--
-- KEYS[1] ready   LIST    elements of normal priority, oldest on the right
-- KEYS[2] handed  LIST    the same, moved here by a notifier; older
-- KEYS[3] ranked  ZSET    id -> rank, of ready jobs of other priorities
-- KEYS[4] later   ZSET    id -> due (ms)
-- KEYS[5] leased  ZSET    lease -> end (ms)
-- KEYS[6] held    HASH    lease -> entry, of leased jobs
-- KEYS[7] unique  HASH    unique key -> holder
-- KEYS[8] paused  STRING  exists while claims are paused
-- KEYS[9] wake    LIST    at most one token, for the notifiers
-- KEYS[10] jobs   HASH    id -> entry, of scheduled, ranked and dead jobs
-- ARGV[1] worker
-- ARGV[2] nonce of this call
-- ARGV[3] lease (ms)
-- ARGV[4] maximum number of jobs
-- ARGV[5] header of an entry for a bare payload, up to the id's length
-- ARGV[6] maximum bytes; the first job may exceed it
--
-- Returns {now (us), 1 if paused else 0, ms until the next delayed job is due or -1,
-- entry, ...}. The entries are as stored in `held`: this delivery is not counted yet.
--
-- Library: entry, side_records, pattern, leasing
local ready, handed, ranked, later = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local leased, held, unique, paused, wake = KEYS[5], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local jobs = KEYS[10]
local worker, nonce, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local wanted, bare_header, most_bytes = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])

local time = redis.call('TIME')
local now_us = string.format('%.0f', time[1] * 1000000 + time[2])
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

-- Most queues have none of these keys most of the time: one command checks all four.
local is_plain = redis.call('EXISTS', paused, later, ranked, handed) == 0
local due_in_ms = -1
if not is_plain then
  if redis.call('EXISTS', paused) == 1 then return {now_us, 1, -1} end
  local due = redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')[2]
  if due then due_in_ms = math.max(0, math.floor(due) - now_ms) end
end

local elements, ranked_ids, expiring = {}, {}, {}
local budget = new_budget(wanted, most_bytes)

local function look_at_ranked(from, to)
  if is_plain or budget.jobs == 0 then return end
  local ids = redis.call('ZRANGE', ranked, from, to, 'BYSCORE', 'LIMIT', 0, budget.jobs)
  local first, page, page_bytes = 1, nil, 0
  while first <= #ids and budget.jobs > 0 do
    page = math.min(next_page(budget, page, page_bytes), #ids - first + 1)
    page_bytes = 0
    local entries = redis.call('HMGET', jobs, unpack(ids, first, first + page - 1))
    for i = 1, page do
      local entry = entries[i]
      if entry and not may_take(budget, entry) then return end
      ranked_ids[#ranked_ids + 1] = ids[first + i - 1]
      if entry then
        elements[#elements + 1], page_bytes = entry, page_bytes + #entry
      end
    end
    first = first + page
  end
end

local function look_at_list(list)
  return take_from_tail(list, budget, elements)
end

look_at_ranked('-inf', NORMAL_RANKS)
local from_handed = is_plain and 0 or look_at_list(handed)
local from_ready = look_at_list(ready)
look_at_ranked(NORMAL_RANKS, '+inf')
if #elements == 0 then return {now_us, 0, due_in_ms} end
-- A key of another type fails here, before the first write.
if #ranked_ids > 0 then redis.call('LLEN', wake) end

-- As `lease_fresh`, for any job, and for an element that is a bare payload.
local function lease_any(element, number)
  local job = read_entry(element)
  if not job then
    local id = nonce .. '-bare-' .. number
    return id, bare_header .. string.char(#id) .. id .. element, 'p', lease_ms
  end
  if (job.expires_at or 0) > 0 and holds_key(unique, job) then
    expiring[#expiring + 1] = job
  end
  local kind = (job.flags % 4 ~= 0 or job.attempt > 0) and 't' or 'p'
  return job.id, element, kind, job.lease_ms or lease_ms
end

local answer, fields, ends, leases = {now_us, 0, due_in_ms}, {}, {}, {}
local name = worker .. '/' .. now_us .. '/' .. nonce .. '-'
local usual_end = string.format('%.0f', now_ms + lease_ms)
for i, element in ipairs(elements) do
  local number = number_of(i)
  local id, entry, kind, ms = lease_fresh(element, lease_ms)
  if not id then id, entry, kind, ms = lease_any(element, number) end
  local lease = name .. number .. kind .. '/' .. id
  fields[2 * i - 1], fields[2 * i] = lease, entry
  ends[2 * i - 1], ends[2 * i] = ms == lease_ms and usual_end or now_ms + ms, lease
  leases[i], answer[i + 3] = lease, entry
end

redis.call('HSET', held, unpack(fields))
local written = redis.pcall('ZADD', leased, unpack(ends))
if type(written) == 'table' and written.err then
  -- Undo the write above, because a script that fails is not undone.
  redis.call('HDEL', held, unpack(leases))
  return written
end
-- A leased job cannot expire, so its unique key must not expire either.
for _, job in ipairs(expiring) do hold_until(unique, job, 0) end
if #ranked_ids > 0 then
  redis.call('ZREM', ranked, unpack(ranked_ids))
  redis.call('HDEL', jobs, unpack(ranked_ids))
end
if from_handed > 0 then redis.call('LTRIM', handed, 0, -from_handed - 1) end
if from_ready > 0 then redis.call('LTRIM', ready, 0, -from_ready - 1) end
if #ranked_ids > 0 and redis.call('EXISTS', ranked) == 1 then notify({wake = wake}) end
return answer
