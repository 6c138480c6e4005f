-- Reading and rewriting entries. The layout is documented in relq-redis, entry.rs.
local NORMAL = 5

-- The fields of an entry, or nil if it does not follow the layout.
local function read_entry(entry)
  if #entry < 12 or entry:sub(1, 4) ~= '\245RQ\1' then return nil end
  local flags, priority, attempt, max_attempts, id_bytes =
    struct.unpack('>BBHHB', entry, 5)
  local at = 12 + id_bytes
  if flags >= 128 or priority > 9 or max_attempts == 0 or id_bytes == 0 then return nil end
  if #entry < at - 1 then return nil end
  local job = {
    flags = flags, priority = priority, attempt = attempt, max_attempts = max_attempts,
    id = entry:sub(12, at - 1), is_indexed = flags % 2 == 1,
  }
  if bit.band(flags, 4) ~= 0 then
    if #entry < at + 7 then return nil end
    job.expires_at, job.expires_offset = struct.unpack('>I8', entry, at), at
    at = at + 8
  end
  if bit.band(flags, 8) ~= 0 then
    if #entry < at + 7 then return nil end
    job.lease_ms = struct.unpack('>I8', entry, at)
    at = at + 8
  end
  if bit.band(flags, 2) ~= 0 then
    if #entry < at or #entry < at + entry:byte(at) then return nil end
    job.unique_key = entry:sub(at + 1, at + entry:byte(at))
  end
  return job
end

-- The entry with its count of deliveries replaced.
local function with_attempt(entry, attempt)
  return entry:sub(1, 6) .. struct.pack('>H', attempt) .. entry:sub(9)
end

-- The entry with its time of expiry replaced, 0 for never.
local function with_expiry(entry, job, expires_at)
  local at = job.expires_offset
  return entry:sub(1, at - 1) .. struct.pack('>I8', expires_at) .. entry:sub(at + 8)
end

-- The entry with its id replaced by a generated one.
local function with_id(entry, job, id)
  local flags = job.flags - (job.is_indexed and 1 or 0)
  return entry:sub(1, 4) .. string.char(flags) .. entry:sub(6, 10) .. string.char(#id) .. id
    .. entry:sub(12 + #job.id)
end

-- The value of a unique key: when its holder loses it (0 for never), and the holder's
-- id.
local function unique_holder(id, expires_at)
  return string.format('%.0f ', expires_at or 0) .. id
end

-- Whole milliseconds. A sorted set would store a score with a fraction as a long text.
local function server_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The budget of a claim: the maximum number of jobs and of bytes. The first job is
-- taken whatever its size.
local function new_budget(jobs, bytes)
  return {jobs = jobs, bytes = bytes, has_taken = false, is_full = false}
end

-- Counts an entry against the budget. Returns false if it does not fit; then no later
-- entry is taken either.
local function may_take(budget, entry)
  if budget.jobs == 0 or budget.has_taken and #entry > budget.bytes then
    budget.jobs, budget.is_full = 0, true
    return false
  end
  budget.jobs, budget.bytes = budget.jobs - 1, budget.bytes - #entry
  budget.has_taken = true
  -- Nothing fits any more, so no further entry needs to be read.
  if budget.bytes <= 0 then budget.jobs, budget.is_full = 0, true end
  return true
end

-- The bytes of entries that one call of a script moves, about: the call ends with the
-- job that reaches this sum. The server runs nothing else meanwhile.
local STEP_BYTES = 1048576

-- The budget of a call that handles jobs one by one, up to `jobs` of them.
local function new_step(jobs)
  return {jobs = jobs, bytes = STEP_BYTES}
end

-- Whether the call handles one more job.
local function has_room(step)
  return step.jobs > 0 and step.bytes > 0
end

-- Counts a job that the call handles. `entry` is false if the job has none.
local function count_job(step, entry)
  step.jobs, step.bytes = step.jobs - 1, step.bytes - #(entry or '')
end

-- The size of the next page when reading a list, after a page of `page` elements. A
-- list does not show how long its elements are before they are read. So reading begins
-- with one element, and each later page has as many elements as would fit if they were
-- as long as the previous ones.
local FIRST_PAGE, GROWTH = 1, 16

local function next_page(budget, page, page_bytes)
  if not page then return math.min(budget.jobs, FIRST_PAGE) end
  local fitting = math.floor(budget.bytes * page / math.max(1, page_bytes))
  return math.max(1, math.min(budget.jobs, page * GROWTH, fitting))
end

-- Appends elements from the tail of a list to `taken`, the last element first, until
-- the budget is used up. Returns how many it appended.
local function take_from_tail(list, budget, taken)
  local count, page, page_bytes = 0, nil, 0
  while budget.jobs > 0 do
    page = next_page(budget, page, page_bytes)
    page_bytes = 0
    local tail = redis.call('LRANGE', list, -count - page, -count - 1)
    for i = #tail, 1, -1 do
      if not may_take(budget, tail[i]) then return count end
      taken[#taken + 1], count = tail[i], count + 1
      page_bytes = page_bytes + #tail[i]
    end
    if #tail < page then break end
  end
  return count
end
