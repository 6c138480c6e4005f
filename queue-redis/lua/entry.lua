-- Functions that read and rewrite entries. queue-redis/src/entry.rs documents the
-- layout.
local NORMAL = 5

-- The flag of the entry of a held job (R30), and whether an entry has it.
local HELD = 128

local function is_held(entry)
  return #entry >= 12 and entry:byte(5) >= HELD
end

-- Returns the fields of an entry, or nil if it does not follow the layout.
local function read_entry(entry)
  if #entry < 12 or entry:sub(1, 4) ~= '\245RQ\1' then return nil end
  local flags, priority, attempt, max_attempts, id_bytes =
    struct.unpack('>BBHHB', entry, 5)
  local at, times = 12 + id_bytes, math.floor(priority / 16)
  priority = priority % 16
  if times > 7 or priority > 9 then return nil end
  local keeps_result = times >= 4
  times = times % 4
  if max_attempts == 0 or id_bytes == 0 or #entry < at - 1 then return nil end
  local job = {
    flags = flags, times = times, priority = priority,
    attempt = attempt, max_attempts = max_attempts,
    id = entry:sub(12, at - 1), is_indexed = flags % 2 == 1,
  }
  if bit.band(flags, 4) ~= 0 then
    if #entry < at + 7 then return nil end
    job.expires_at = struct.unpack('>I8', entry, at)
    at = at + 8
  end
  if bit.band(flags, 8) ~= 0 then
    if #entry < at + 7 then return nil end
    job.lease_ms = struct.unpack('>I8', entry, at)
    at = at + 8
  end
  if keeps_result then
    if #entry < at + 7 then return nil end
    job.keep_ms = struct.unpack('>I8', entry, at)
    at = at + 8
  end
  if flags >= HELD then
    if #entry < at + 8 or #entry < at + 8 + entry:byte(at + 8) then return nil end
    job.leader_at, job.delay_ms = at, struct.unpack('>I8', entry, at)
    job.leader = entry:sub(at + 9, at + 8 + entry:byte(at + 8))
    at = at + 9 + #job.leader
  end
  if bit.band(flags, 2) ~= 0 then
    if #entry < at or #entry < at + entry:byte(at) then return nil end
    job.unique_key = entry:sub(at + 1, at + entry:byte(at))
  end
  return job
end

-- How many bytes of an entry `read_entry` needs at most: the fixed part, an id, three
-- times and a unique key. Lua reads each byte of a text that it creates, so a script that
-- needs no payload copies only these. Entries of held jobs are longer, and are read as a
-- whole.
local LONGEST_HEAD = 548

-- Returns the first 8 bytes of an entry, with its count of deliveries replaced. The
-- caller appends the rest of the entry.
local function start_with_attempt(entry, attempt)
  return entry:sub(1, 6) .. struct.pack('>H', attempt)
end

-- Returns the entry with another count of deliveries.
local function with_attempt(entry, attempt)
  return start_with_attempt(entry, attempt) .. entry:sub(9)
end

-- Returns the entry of the job with this id with another time of expiry, where 0 means
-- never. The time is stored behind the id.
local function with_expiry(entry, id, expires_at)
  local at = 12 + #id
  return entry:sub(1, at - 1) .. struct.pack('>I8', expires_at) .. entry:sub(at + 8)
end

-- Returns the entry of a held job as that of a job without a leader.
local function without_leader(entry, job)
  return entry:sub(1, 4) .. string.char(job.flags - HELD) .. entry:sub(6, job.leader_at - 1)
    .. entry:sub(job.leader_at + 9 + #job.leader)
end

-- The times that an entry may end with. The later one is the last.
local ENQUEUE_TIME, READY_TIME = 1, 2

-- Returns the entry with this time as its last.
local function with_time(entry, job, which, now_ms)
  local time = struct.pack('>I6', now_ms)
  if job.times >= which then return entry:sub(1, -7) .. time end
  return entry:sub(1, 5) .. string.char(entry:byte(6) + 16 * which) .. entry:sub(7) .. time
end

-- Returns the entry of a new job with the time of its push, in place of its last six bytes.
local function with_push_time(entry, now_ms)
  return entry:sub(1, -7) .. struct.pack('>I6', now_ms)
end

-- The time of the push in an id that relq made (ms), or nil: see timed_id.rs.
local function time_of_id(id)
  local digits = id:match('^([0-9a-v]+)%-') or ''
  if #digits ~= 17 then return nil end
  local ms = 0
  for i = 1, 9 do ms = ms * 32 + tonumber(digits:sub(i, i), 32) end
  return ms
end

-- Returns how long the job of an entry has been waiting (ms), counted from when it became
-- ready at the back of the queue. Returns -1 if the entry does not say, or is nil.
local function ready_age(entry, now_ms)
  local job = read_entry(entry or '')
  if not job then return -1 end
  local since_ms
  if job.times > 0 then
    since_ms = struct.unpack('>I6', entry, #entry - 5)
  elseif job.flags % 2 == 0 and bit.band(job.flags, 32) == 0 then
    since_ms = time_of_id(job.id)
  end
  -- The time may be ahead: a producer's estimate is, or the server's clock was set back.
  return since_ms and math.max(0, now_ms - since_ms) or -1
end

-- Returns the entry with another id, which relq generated and need not remember.
local function with_id(entry, job, id)
  local flags = job.flags - (job.is_indexed and 1 or 0)
  return entry:sub(1, 4) .. string.char(flags) .. entry:sub(6, 10) .. string.char(#id) .. id
    .. entry:sub(12 + #job.id)
end

-- Returns the entry of a job whose id was not remembered, marked as one whose id is.
local function with_index(entry)
  return entry:sub(1, 4) .. string.char(entry:byte(5) + 1) .. entry:sub(6)
end

-- Returns the entry without the time for which its result is kept.
local function without_result(entry, job)
  if not job.keep_ms then return entry end
  local at = 12 + #job.id + (job.expires_at and 8 or 0) + (job.lease_ms and 8 or 0)
  return entry:sub(1, 5) .. string.char(entry:byte(6) - 64) .. entry:sub(7, at - 1)
    .. entry:sub(at + 8)
end

-- The last time that `unique_holder` has formatted, and its text. Most jobs of a push
-- expire at the same time.
local formatted_ms, formatted

-- Returns the value that the hash `unique` stores for a key: the time when the job
-- loses the key (ms, 0 for never), and the job's id.
local function unique_holder(id, expires_at)
  local time_ms = expires_at or 0
  if time_ms ~= formatted_ms then
    formatted_ms, formatted = time_ms, string.format('%.0f ', time_ms)
  end
  return formatted .. id
end

-- Returns the server's time in whole milliseconds. A sorted set would store a score
-- with a fraction as a long text.
local function server_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The budget of a claim: the maximum number of jobs and of bytes. The first job is
-- taken whatever its size.
local function new_budget(jobs, bytes)
  return {jobs = jobs, bytes = bytes, has_taken = false, is_full = false}
end

-- Takes a page of entries, which must fit, from the budget.
local function count_page(budget, jobs, bytes)
  budget.jobs, budget.bytes = budget.jobs - jobs, budget.bytes - bytes
  budget.has_taken = budget.has_taken or jobs > 0
  -- If no bytes are left, the caller need not read another entry.
  if budget.bytes <= 0 then budget.jobs, budget.is_full = 0, true end
end

-- Counts an entry against the budget. Returns false if the entry does not fit. Then no
-- later entry is taken, even a small one.
local function may_take(budget, entry)
  if budget.jobs == 0 or budget.has_taken and #entry > budget.bytes then
    budget.jobs, budget.is_full = 0, true
    return false
  end
  count_page(budget, 1, #entry)
  return true
end

-- About how many bytes of entries one call of a script moves: the call ends with the
-- job that reaches this sum. While the script runs, the server serves no other client.
local STEP_BYTES = 1048576

-- The budget of a call that handles up to `jobs` jobs, one by one.
local function new_step(jobs)
  return {jobs = jobs, bytes = STEP_BYTES}
end

-- Whether the budget has room for one more job.
local function has_room(step)
  return step.jobs > 0 and step.bytes > 0
end

-- Counts a job against the budget. `entry` is false if the job has no entry, and `value` is
-- its result, if the call stores one.
local function count_job(step, entry, value)
  step.jobs, step.bytes = step.jobs - 1, step.bytes - #(entry or '') - #(value or '')
end

-- The size of the next page when reading a list, after a page of `page` elements. A
-- list does not show how long its elements are before they are read. So reading begins
-- with one element, and each later page has as many elements as would fit if they were
-- as long as the previous ones. A page is small, because large elements may follow small
-- ones, and a command for each 16 elements takes no measurable time.
local FIRST_PAGE, LARGEST_PAGE = 1, 16

local function next_page(budget, page, page_bytes)
  if not page then return math.min(budget.jobs, FIRST_PAGE) end
  local fitting = math.floor(budget.bytes * page / math.max(1, page_bytes))
  return math.max(1, math.min(budget.jobs, LARGEST_PAGE, fitting))
end

-- Appends elements from the tail of a list to `taken`, the last element first, until
-- the budget is used up. Returns how many it appended. The first element that a call
-- takes is a page of its own, so that later pages are checked against its size.
local function take_from_tail(list, budget, taken)
  local before, count, page, page_bytes = #taken, 0, nil, 0
  while budget.jobs > 0 do
    page = next_page(budget, page, page_bytes)
    local from, to = -count - page, -count - 1
    -- The usual arguments are texts: Redis formats a number with 17 digits, which takes
    -- half as long as this command itself.
    if from == -1 then from, to = '-1', '-1' end
    local tail = redis.call('LRANGE', list, from, to)
    page_bytes = 0
    for i = #tail, 1, -1 do
      local element = tail[i]
      local bytes = page_bytes + #element
      if budget.has_taken and bytes > budget.bytes then
        budget.jobs, budget.is_full = 0, true
        return count
      end
      count, page_bytes = count + 1, bytes
      taken[before + count] = element
    end
    count_page(budget, #tail, page_bytes)
    if #tail < page then break end
  end
  return count
end
