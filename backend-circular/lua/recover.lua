#!lua flags=allow-oom
-- Release a page of expired leases, bury jobs on their last attempt, and drop elements
-- of ended jobs.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] maximum number of jobs
-- ARGV[2] maximum number of elements to look at; fewer when they are large
-- ARGV[3] how many elements from the tail were looked at before
-- ARGV[4] 'all', or 'left' for the leases of released workers only
--
-- Returns {{how many were made ready, how many were buried, 1 if there is more else 0,
-- ms until the next lease ends or -1}, how many elements from the tail have been looked
-- at, or 0 if the next call must begin at the tail}.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local page, most, offset = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local is_for_all = ARGV[4] == 'all'
local now_ms = server_ms()
-- `left` counts the jobs of released workers. They count against the maximum, but not as
-- made ready: the release has counted them.
local counts = {requeued = 0, buried = 0, left = 0}

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)

local function is_full() return counts.requeued + counts.buried + counts.left >= page end

-- Returns the number of leases whose element must be found in the ring and rewritten.
local function unseen()
  return redis.call('ZCOUNT', keys.marks, LEFT_UNSEEN, LEFT_UNSEEN)
    + (is_for_all and redis.call('ZCOUNT', keys.marks, '(0', now_ms) or 0)
end

-- Releases expired leases by changing their mark. Most need nothing else: the claim
-- that reaches the element takes the job over.
local function let_go()
  local ended = redis.call('ZRANGE', keys.marks, '(0', now_ms, 'BYSCORE', 'LIMIT', 0, page)
  for _, token in ipairs(ended) do
    if token:sub(-1) == 'p' then
      redis.call('ZADD', keys.marks, RECOVERED, token)
      counts.requeued = counts.requeued + 1
    end
  end
end

-- Makes the job at `index` ready in its position, or buries it.
local function take_back(index, element, mark)
  local token, entry_at = read_in_process(element)
  local head = head_from(element, entry_at)
  local job = read_entry(head)
  if job and mark > 0 and job.attempt >= job.max_attempts then
    recover_job(keys, job, element:sub(entry_at), now_ms)
    drop_leased(keys, element)
    counts.buried = counts.buried + 1
    return
  end
  if job and mark > 0 then note_lost_lease(keys, job) end
  if job then hold_until_expiry(keys.unique, job) end
  local is_counted = not job or mark >= RECOVERED
  local entry = is_counted and element:sub(entry_at)
    or start_with_attempt(head, job.attempt - 1) .. element:sub(entry_at + 8)
  redis.call('LSET', keys.circle, index, entry)
  redis.call('ZREM', keys.marks, token)
  local outcome = mark > 0 and 'requeued' or 'left'
  counts[outcome] = counts[outcome] + 1
end

-- Looks at a page of the elements that follow the first `offset` ones from the tail.
-- Returns how many it looked at, their bytes, and whether the head was reached.
local function look_at(offset, page)
  local window, bytes = redis.call('LRANGE', keys.circle, -offset - page, -offset - 1), 0
  for i = #window, 1, -1 do
    if is_full() then return #window - i, bytes, false end
    bytes = bytes + #window[i]
    local mark = mark_of(keys, (read_in_process(window[i])))
    local has_ended = mark and mark > 0 and mark <= now_ms
    if is_for_all and has_ended or mark == LEFT_UNSEEN then
      take_back(i - #window - 1 - offset, window[i], mark)
    end
  end
  return #window, bytes, #window < page
end

-- Searches without rotating the ring, because a partial rotation would change the order
-- of the waiting jobs. Returns how many elements from the tail were looked at, 0 for
-- all.
local function look()
  local budget, seen, is_at_head = new_budget(most, STEP_BYTES), 0, false
  local page, page_bytes, count
  while has_room(budget) and not is_at_head do
    page = next_page(budget, page, page_bytes)
    count, page_bytes, is_at_head = look_at(offset + seen, page)
    budget.jobs, budget.bytes = budget.jobs - count, budget.bytes - page_bytes
    seen = seen + count
    if count < page then break end
  end
  if not is_at_head then return offset + seen end
  if offset == 0 then
    if is_for_all then forget_strays(keys, '(0', now_ms) end
    forget_strays(keys, LEFT_UNSEEN, LEFT_UNSEEN)
  end
  return 0
end

if is_for_all then let_go() end
if not is_full() then offset = unseen() > 0 and look() or 0 end
local has_more = unseen() > 0 and (offset > 0 or is_full())
-- Dropping elements moves the others, so it waits until no further call needs `offset`.
local is_littered = is_for_all and not has_more and drop_litter(keys, most)
if counts.requeued > 0 then notify(keys) end
return {
  {counts.requeued, counts.buried, (has_more or is_littered) and 1 or 0,
    end_in_ms(keys, now_ms)},
  has_more and offset or 0,
}
