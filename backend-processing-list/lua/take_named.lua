#!lua flags=allow-oom
-- Take jobs back by the names of their leases, from one list, which is searched step by
-- step from its newest element on.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs; then
-- KEYS[...]  list  LIST  the processing list that holds the jobs
-- ARGV[1] 'over' to take expired jobs and count their attempt; 'left' to take all jobs
--         without counting it
-- ARGV[2] how many of the oldest elements were not read yet, or -1 at the beginning.
--         New elements are pushed at the other end, so these include all that an earlier
--         step did not read.
-- ARGV[3] when the search began (ms), or -1 at the beginning
-- ARGV[4...] the names of the leases
--
-- Returns {how many were made ready, how many were buried, how many of the oldest
-- elements were not read yet, when the search began (ms)}.
--
-- Library: entry, pattern, moves
local keys = bind_keys()
local list, how, unread = list_of(1), ARGV[1], tonumber(ARGV[2])
local FIRST, MOST_READ = 4, 1000
local now_ms, began_ms = server_ms(), tonumber(ARGV[3])
if began_ms < 0 then began_ms = now_ms end

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
local length = redis.call('LLEN', list)
unread = unread < 0 and length or math.min(unread, length)

-- Whether the lease belongs to a session that has ended. The list of such a session is
-- taken back as a whole, in its own order.
local function is_of_ended_session(name)
  local session = name:match('^[^/]*/[^/]+')
  local end_ms = session and redis.call('ZSCORE', keys.workers, session)
  return end_ms and is_over(how, end_ms, now_ms)
end

-- A lease that was extended since the search began, and that ends before this step, is not
-- wanted: an earlier step may have read its element. The next search finds it.
local until_ms = math.min(began_ms, now_ms)
local is_wanted, wanted = {}, 0
for i = FIRST, #ARGV do
  local end_ms = redis.call('ZSCORE', keys.leased, ARGV[i])
  if end_ms and is_over(how, end_ms, until_ms) and not is_of_ended_session(ARGV[i]) then
    is_wanted[ARGV[i]], wanted = true, wanted + 1
  end
end

-- Reads elements, the newest first, until all are found or the step is used up. The
-- step counts all elements that it reads, and their bytes.
local found, budget, page, page_bytes = {}, new_budget(MOST_READ, STEP_BYTES), nil, 0
while wanted > 0 and unread > 0 and budget.jobs > 0 and budget.bytes > 0 do
  page = math.min(next_page(budget, page, page_bytes), unread)
  page_bytes = 0
  for _, element in ipairs(redis.call('LRANGE', list, -unread, page - unread - 1)) do
    page_bytes = page_bytes + #element
    local name = name_of(list, element)
    if name and is_wanted[name] then
      found[#found + 1], wanted, is_wanted[name] = element, wanted - 1, nil
    end
  end
  unread = unread - page
  budget.jobs, budget.bytes = budget.jobs - page, budget.bytes - page_bytes
end

local function recover(job, entry)
  return recover_job(keys, job, entry, now_ms)
end

local counts = {requeued = 0, buried = 0}
for _, element in ipairs(found) do
  local name, entry_at = read_element(list, element)
  bring_back(keys, how, element, entry_at, counts, recover)
  redis.call('LREM', list, 1, element)
  redis.call('ZREM', keys.leased, name)
end

-- A lease whose element is not in the list is forgotten.
if wanted == 0 then unread = 0 end
if unread == 0 then
  for name in pairs(is_wanted) do redis.call('ZREM', keys.leased, name) end
end
return {counts.requeued, counts.buried, unread, math.floor(began_ms)}
