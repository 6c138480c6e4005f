#!lua flags=allow-oom
-- Lease the jobs that have been ready longest.
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

local answer, elements = {now_ms, 0, next_in_ms(keys.later, now_ms)}, {}
local taken = take_from_tail(keys.ready, new_budget(most, most_bytes), elements)

-- Returns the entry of an element. An element that cannot be read becomes a bare
-- payload.
local function entry_of(element, number)
  if read_entry(element) then return element end
  local id = nonce .. '-bare-' .. number
  return bare_header .. string.char(#id) .. id .. element
end

for i, element in ipairs(elements) do
  -- All numbers have five digits, so that the leases of one claim sort by them.
  local number = 10000 + i
  local entry = entry_of(element, number)
  local job = read_entry(entry)
  entry = with_attempt(entry, job.attempt + 1)
  local token = worker .. '/' .. now_us .. '/' .. nonce .. '-' .. number
  local lease, end_ms = token .. '/' .. job.id, now_ms + (job.lease_ms or lease_ms)
  -- Write the set first: recovery would never find a lease that is in no set.
  look_in(keys, minute_of(end_ms), lease)
  redis.call('HSET', keys.held, lease, entry)
  redis.call('HSET', keys.ends, lease, string.format('%.0f', end_ms))
  hold_while_leased(keys.unique, job, now_ms)
  answer[#answer + 1], answer[#answer + 2] = token, entry
end
if taken > 0 then redis.call('LTRIM', keys.ready, 0, -taken - 1) end
return answer
