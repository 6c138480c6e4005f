#!lua flags=allow-oom
-- Rotate the ring and lease waiting jobs. Take over jobs whose lease has expired or
-- whose worker was released.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] worker
-- ARGV[2] nonce of this call
-- ARGV[3] lease (ms)
-- ARGV[4] maximum number of jobs
-- ARGV[5] maximum number of elements to rotate
-- ARGV[6] header of an entry for a bare payload, up to the id's length
-- ARGV[7] maximum number of bytes; the first job may be larger
-- ARGV[8] with at most this many waiting jobs, the head of the ring is searched before
--         the ring is rotated
--
-- Returns {now (us), outcome, ms until the next delayed job is due or -1, ms until the
-- next lease ends or -1, number of rotated elements, length of the ring, element, ...}.
-- Each element is as this call has stored it, as an element in process. The outcome is
-- 'paused', 'found' (jobs were leased), 'more' (a job may be found by rotating on),
-- 'nothing' (no job can be claimed) or 'empty' (the ring has no element).
--
-- Library: entry, side_records, pattern, leasing, moves
local keys = bind_keys()
local worker, nonce, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local wanted, max_rotations, bare_header = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
local few = tonumber(ARGV[8])

local time = redis.call('TIME')
local now_us = string.format('%.0f', time[1] * 1000000 + time[2])
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

local due_in_ms = next_in_ms(keys.later, now_ms)
-- Most queues have none of these keys most of the time: one command checks them all.
if redis.call('EXISTS', keys.paused, keys.unique, keys.jobs, keys.dead, keys.errors) > 0 then
  if redis.call('EXISTS', keys.paused) == 1 then
    return {now_us, 'paused', due_in_ms, -1, 0, 0}
  end
  -- If a key has another type, the script fails here, before its first write.
  check_bookkeeping(keys)
end

-- Each mark belongs to one element, so the claimable elements can be counted without
-- reading the ring.
check_ready(keys)
redis.call('LLEN', keys.wake)
local length = redis.call('LLEN', keys.circle)
local over, is_littered = litter(keys, length)
local running = redis.call('ZCOUNT', keys.marks, '(' .. now_ms, '+inf')
local claimable = length - running - over
-- Elements of ended jobs are dropped when a rotation meets them. Only if there are many
-- of them does the script rotate the ring just to drop them.
local litter_left = is_littered and over or 0
local budget = new_budget(wanted, tonumber(ARGV[7]))
local leased, name = {}, worker .. '/' .. now_us .. '/' .. nonce .. '-'
-- As text, because the server would have to format the number for each job.
local usual_end = now_ms + lease_ms .. ''

-- Leases the job whose entry begins at `entry_at` in its element. `put` replaces this
-- element in the ring by the new one. The mark is written first, so that no element is
-- ever in process without a mark.
local function lease(element, entry_at, is_counted, put)
  -- Concatenating a number would format it as a fraction, which takes much longer.
  local number = string.format('%d', #leased + 1)
  local head, rest_at = head_from(element, entry_at), entry_at + 8
  local start, letter, ms = leased_fresh(head)
  if not start then
    start, letter, ms = leased_again(keys, head, is_counted, now_ms)
  end
  if not start then
    start, letter, rest_at = bare_header .. bare_id(nonce, number), 'p', entry_at
  end
  local token = name .. number .. letter
  local held = in_process(token, start, element_from(element, rest_at))
  redis.call('ZADD', keys.marks, ms and now_ms + ms or usual_end, token)
  put(held, element)
  leased[#leased + 1] = held
  claimable = claimable - 1
end

local function put_in_place(element)
  redis.call('LSET', keys.circle, '0', element)
end

-- Equal elements are equal jobs: it does not matter which one is removed.
local function put_first(element, old)
  redis.call('LPUSH', keys.circle, element)
  redis.call('LREM', keys.circle, 1, old)
end

-- Buries the job at the head if its lease expired on its last attempt. Returns whether
-- it did.
local function bury_spent(element, token, mark)
  local _, entry_at = read_in_process(element)
  local job = mark > 0 and read_entry(head_from(element, entry_at))
  if not job or job.attempt < job.max_attempts then return false end
  recover_job(keys, job, element:sub(entry_at), now_ms)
  redis.call('LPOP', keys.circle)
  redis.call('ZREM', keys.marks, token)
  claimable = claimable - 1
  return true
end

-- Leases the job at the head, whose lease expired or whose worker was released.
local function take_over(element, token, mark)
  local _, entry_at = read_in_process(element)
  local job = mark >= RECOVERED and read_entry(head_from(element, entry_at))
  if job then note_lost_lease(keys, job) end
  lease(element, entry_at, mark >= RECOVERED, put_in_place)
  redis.call('ZREM', keys.marks, token)
end

-- Returns as many elements from the head as there are claimable elements, or none if
-- one of them is in process or if they are too large to be read in one call.
local function waiting_head()
  local head, page, page_bytes, bytes = {}, nil, 0, 0
  while #head < claimable do
    page = math.min(next_page(budget, page, page_bytes), claimable - #head)
    page_bytes = 0
    for _, element in ipairs(redis.call('LRANGE', keys.circle, #head, #head + page - 1)) do
      page_bytes = page_bytes + #element
      if read_in_process(element) then return {} end
      head[#head + 1] = element
    end
    bytes = bytes + page_bytes
    if bytes > STEP_BYTES or page_bytes == 0 then return {} end
  end
  return head
end

-- If few jobs wait and many are in process, the waiting jobs are mostly the newest, at
-- the head. They are leased from there, the oldest first. Rotating past all elements in
-- process would find the same jobs.
local function look_at_head()
  if claimable > few or claimable >= length then return end
  local head = waiting_head()
  for i = #head, 1, -1 do
    if not may_take(budget, head[i]) then return end
    lease(head[i], 1, true, put_first)
  end
end

-- Rotates the ring and leases waiting jobs. Returns how many elements were rotated:
-- fewer when they are large.
local function look_at_tail()
  local rotations, bytes = math.min(length, max_rotations), 0
  for rotated = 0, rotations - 1 do
    if budget.jobs == 0 or bytes >= STEP_BYTES or math.max(claimable, litter_left) <= 0 then
      return rotated
    end
    local element, token, mark, element_bytes = rotate(keys)
    bytes = bytes + element_bytes
    local has_ended = mark and mark <= now_ms
    if not element then
      litter_left = litter_left - 1
    elseif mark and (not has_ended or bury_spent(element, token, mark)) then
      -- The lease still runs, or the job was buried: there is nothing to lease.
    elseif not may_take(budget, element) then
      redis.call('LMOVE', keys.circle, keys.circle, 'LEFT', 'RIGHT')
      return rotated
    elseif has_ended then
      take_over(element, token, mark)
    else
      lease(element, 1, true, put_in_place)
    end
  end
  return rotations
end

if claimable > 0 then look_at_head() end
local rotated = look_at_tail()
if rotated == length and #leased < wanted then
  local is_empty = redis.call('EXISTS', keys.circle) == 0
  forget_strays(keys, '-inf', is_empty and '+inf' or now_ms)
end

local function tell()
  if #leased > 0 then return 'found' end
  if claimable > 0 and rotated < length then return 'more' end
  return redis.call('EXISTS', keys.circle) == 1 and 'nothing' or 'empty'
end

-- One push wakes one worker, which wakes the next one if more jobs wait.
if #leased > 0 and claimable > 0 then notify(keys) end
local answer = {now_us, tell(), due_in_ms, end_in_ms(keys, now_ms), rotated, length}
for i, element in ipairs(leased) do answer[6 + i] = element end
return answer
