#!lua flags=allow-oom
-- Lease the jobs whose ids have been in the list longest.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] worker
-- ARGV[2] nonce of this call
-- ARGV[3] lease (ms)
-- ARGV[4] maximum number of jobs
-- ARGV[5] header of an entry for a bare payload, up to the id's length
-- ARGV[6] maximum number of bytes; the first job may be larger
--
-- Returns {now (ms), 1 if paused else 0, ms until the next delayed job is due or -1,
-- token, entry, ...}. The entries count this delivery.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local worker, nonce, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local most, bare_header, most_bytes = tonumber(ARGV[4]), ARGV[5], tonumber(ARGV[6])

local time = redis.call('TIME')
local now_us = string.format('%.0f', time[1] * 1000000 + time[2])
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

if redis.call('EXISTS', keys.paused) == 1 then return {now_ms, 1, -1} end
-- If a key has another type, the script fails here, before its first write.
check_ready(keys)
redis.call('HLEN', keys.unique)

-- Returns the id and the entry of an element. An element without a body is a bare
-- payload, or an entry that a client copied from somewhere.
local function read_element(element, number)
  local id = element:sub(1, #ID_MARK) == ID_MARK and element:sub(#ID_MARK + 1)
  local body = id and redis.call('HGET', keys.bodies, id)
  if body and read_entry(body) then return id, body end
  if not body then id = nonce .. '-bare-' .. number end
  local copied = not body and read_entry(element)
  if copied then return id, with_id(element, copied, id) end
  return id, bare_header .. string.char(#id) .. id .. (body or element)
end

local answer, budget = {now_ms, 0, next_in_ms(keys.later, now_ms)}, new_budget(most, most_bytes)

-- Leases the job of the oldest element, and removes the element. Returns false if the
-- job exceeds the budget.
local function lease_oldest(element, number)
  local id, entry = read_element(element, number)
  local token = worker .. '/' .. now_us .. '/' .. nonce .. '-' .. number
  local lease = token .. '/' .. id
  if redis.call('HEXISTS', keys.processing, id) == 0 then
    if not may_take(budget, entry) then return false end
    local job = read_entry(entry)
    entry = with_attempt(entry, job.attempt + 1)
    redis.call('HSET', keys.bodies, id, entry)
    redis.call('ZADD', keys.leased, now_ms + (job.lease_ms or lease_ms), lease)
    redis.call('HSETNX', keys.processing, id, lease)
    hold_while_leased(keys.unique, job, now_ms)
    answer[#answer + 1], answer[#answer + 2] = token, entry
  end
  -- A second element of an id that is in process is dropped: the job runs once.
  redis.call('RPOP', keys.ready)
  return true
end

-- All numbers have five digits, so that the leases of one claim sort by them.
for number = 10001, 10000 + most do
  local element = redis.call('LINDEX', keys.ready, -1)
  if not element or not lease_oldest(element, number) then break end
end
return answer
