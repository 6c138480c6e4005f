#!lua flags=allow-oom
-- Rotate the ring and lease waiting jobs. Take over jobs whose lease has expired or
-- whose worker was released.
--
-- KEYS[1...] the bookkeeping's, then the pattern's: keys.rs
-- ARGV[1] worker
-- ARGV[2] nonce of this call
-- ARGV[3] lease (ms)
-- ARGV[4] maximum number of jobs
-- ARGV[5] maximum number of elements to rotate
-- ARGV[6] header of an entry for a bare payload, up to the id's length
-- ARGV[7] maximum bytes; the first job may exceed it
--
-- Returns {now (us), 'paused', 'found', 'more' (elements to rotate), 'nothing' or
-- 'empty' (ring), ms until the next delayed job is due or -1, ms until the next lease
-- ends or -1, number of rotated elements, length of the ring, element, ...}. The
-- elements have their new form, in process.
--
-- Library: entry, side_records, pattern, leasing, moves
local keys = bind_keys()
local worker, nonce, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local wanted, max_rotations, bare_header = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]
-- The maximum number of waiting jobs for which the head is searched before the ring is
-- rotated.
local FEW = 32

local time = redis.call('TIME')
local now_us = string.format('%.0f', time[1] * 1000000 + time[2])
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

local due_in_ms = next_in_ms(keys.later, now_ms)
-- Most queues have none of these keys most of the time: one command checks them all.
if redis.call('EXISTS', keys.paused, keys.unique, keys.jobs, keys.dead, keys.errors) > 0 then
  if redis.call('EXISTS', keys.paused) == 1 then
    return {now_us, 'paused', due_in_ms, -1, 0, 0}
  end
  -- Keys of another type fail here, before the first write.
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

-- Leases a job. `put` replaces its element at the head by the new one. The mark is
-- written first, so that no element is ever in process without a mark.
local function lease(entry, is_counted, put)
  local number = #leased + 1
  local held, letter, ms = leased_fresh(entry)
  if not held then held, letter, ms = leased_again(keys, entry, is_counted) end
  if not held then held, letter = bare_header .. bare_id(nonce, number) .. entry, 'p' end
  local token = name .. number .. letter
  local element = in_process(token, held)
  redis.call('ZADD', keys.marks, now_ms + (ms or lease_ms), token)
  put(element, entry)
  leased[#leased + 1] = element
  claimable = claimable - 1
end

local function put_in_place(element)
  redis.call('LSET', keys.circle, 0, element)
end

-- Equal elements are equal jobs: it does not matter which one is removed.
local function put_first(element, old)
  redis.call('LPUSH', keys.circle, element)
  redis.call('LREM', keys.circle, 1, old)
end

-- Buries the job at the head if its lease expired on its last attempt. Returns whether
-- it did.
local function bury_spent(element, token, mark)
  local _, entry = read_in_process(element)
  local job = mark > 0 and read_entry(entry)
  if not job or job.attempt < job.max_attempts then return false end
  recover_job(keys, job, entry, now_ms)
  redis.call('LPOP', keys.circle)
  redis.call('ZREM', keys.marks, token)
  claimable = claimable - 1
  return true
end

-- Leases the job at the head, whose lease expired or whose worker was released.
local function take_over(element, token, mark)
  local _, entry = read_in_process(element)
  local job = mark >= RECOVERED and read_entry(entry)
  if job then note_lost_lease(keys, job) end
  lease(entry, mark >= RECOVERED, put_in_place)
  redis.call('ZREM', keys.marks, token)
end

-- The elements at the head that are as many as the claimable ones, if all of them wait
-- and they are not too large to be looked at in one call.
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
  if claimable > FEW or claimable >= length then return end
  local head = waiting_head()
  for i = #head, 1, -1 do
    if not may_take(budget, head[i]) then return end
    lease(head[i], true, put_first)
  end
end

-- Returns how many elements were rotated: fewer when they are large.
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
      -- Nothing to lease.
    elseif not may_take(budget, element) then
      redis.call('LMOVE', keys.circle, keys.circle, 'LEFT', 'RIGHT')
      return rotated
    elseif has_ended then
      take_over(element, token, mark)
    else
      lease(element, true, put_in_place)
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
