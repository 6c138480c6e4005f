-- Creates the names of the leases of a claim, and ends jobs by the names of their
-- leases. Needs relq-redis's entry.lua and side_records.lua.

local DIGITS = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9'}

-- Whether an entry belongs to a job without options that is delivered for the first
-- time. `head` is the first 11 bytes of the entry; the last of them is the id's length.
local function is_fresh(head)
  return #head == 11 and head:sub(1, 8) == '\245RQ\1\0\5\0\0'
    and head:sub(9, 10) ~= '\0\0' and head:byte(11) > 0
end

-- Reads any element, also a bare payload. Returns the job's id, its entry, the kind of
-- its lease, the length of its lease (ms), and the job if its unique key would expire.
local function lease_any(element, number, now_ms)
  local _, nonce, lease_ms, _, bare_header = unpack(ARGV)
  local job = read_entry(element)
  if not job then
    local id = nonce .. '-bare-' .. number
    return id, bare_header .. string.char(#id) .. id .. element, 'p', tonumber(lease_ms)
  end
  local expires = (job.expires_at or 0) > now_ms and holds_key(KEYS[7], job)
  local kind = (job.flags % 4 ~= 0 or job.attempt > 0) and 't' or 'p'
  return job.id, element, kind, job.lease_ms or tonumber(lease_ms), expires and job
end

-- Names the leases of a claim: `name`, a number, the kind, the job's id. The numbers
-- have five digits, so that the leases of one claim sort by them. Replaces bare
-- payloads by their entries. Returns the arguments of the HSET that stores the entries,
-- those of the ZADD that stores the ends, and the jobs whose unique keys would expire.
--
-- The loop runs once for each job, and most of its time goes into strings and function
-- calls. So the head of an entry is compared with the previous one, ten leases share a
-- prefix, and the usual end is converted to text once.
local function lease_all(elements, name, now_ms, lease_ms)
  local sub, fields, ends, expiring = string.sub, {}, {}, {}
  local usual_end = now_ms + lease_ms .. ''
  local prefix, ones, usual_head, id_end = name .. '1000', nil, nil, nil
  for i = 1, #elements do
    local element, at = elements[i], 2 * i
    ones = i % 10
    if ones == 0 then prefix = name .. 1000 + i / 10 end
    local head = sub(element, 1, 11)
    if head ~= usual_head and is_fresh(head) then
      usual_head, id_end = head, 11 + head:byte(11)
    end
    local lease, end_ms = nil, usual_end
    if head == usual_head and #element >= id_end then
      lease = prefix .. DIGITS[ones + 1] .. 'p/' .. sub(element, 12, id_end)
    else
      local id, entry, kind, ms, job = lease_any(element, 10000 + i, now_ms)
      lease = prefix .. DIGITS[ones + 1] .. kind .. '/' .. id
      if ms ~= lease_ms then end_ms = now_ms + ms end
      if job then expiring[#expiring + 1] = job end
      elements[i], element = entry, entry
    end
    fields[at - 1], fields[at] = lease, element
    ends[at - 1], ends[at] = end_ms, lease
  end
  return fields, ends, expiring
end

-- Ends jobs without side records. Their leases are the arguments of the script from
-- `first` on. Returns the positions, from 0, of the leases that were lost. The caller
-- has checked the types of the keys.
local function finish(leased, held, totals, total, first)
  local count, lost = #ARGV - first + 1, {}
  -- If as many entries were deleted as there are leases, no lease is lost and all
  -- leases can be removed at once. Otherwise each lease is checked separately.
  if redis.call('HDEL', held, unpack(ARGV, first)) == count then
    redis.call('ZREM', leased, unpack(ARGV, first))
  else
    for i = first, #ARGV do
      if redis.call('ZREM', leased, ARGV[i]) == 0 then lost[#lost + 1] = i - first end
    end
  end
  -- If another client has overwritten the totals with another type, adding fails and is
  -- ignored, because the jobs are already removed.
  count = count - #lost
  if count > 0 then redis.pcall('HINCRBY', totals, total, count == 1 and '1' or count) end
  return lost
end
