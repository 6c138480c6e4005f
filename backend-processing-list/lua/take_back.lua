#!lua flags=allow-oom
-- Take jobs back: a page of the expired ones, or of those of a worker that is released.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs; then
-- KEYS[...]  lists  LIST  processing lists: those of the sessions, those of the leases
-- ARGV[1] 'over' to take expired jobs and count their attempt; 'left' to take all named
--         jobs without counting it
-- ARGV[2] how many at most; fewer when the entries are large
-- ARGV[3] for how long the list of a retired session is watched (ms)
-- ARGV[4] how many leases follow
-- ARGV[5...] for each lease: its name, the number of its list; the first becomes the next
--            ready job. Then the sessions, the earliest end first.
--
-- Returns {how many were made ready, how many were buried, 1 if there is more else 0,
-- ms until the next lease expires or -1}.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local how, page, watch_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local leases = tonumber(ARGV[4])
local FIRST_LEASE, FIRST_SESSION = 5, 5 + 2 * leases
local now_ms = server_ms()

-- Keys of another type fail here, before the first write.
check_keys(keys)
for i = 1, #KEYS - BOOKKEEPING_KEYS - PATTERN_KEYS do redis.call('LLEN', list_of(i)) end
local counts, step, has_more, next_ms = {requeued = 0, buried = 0}, new_step(page), 0, -1

local function is_over(end_ms)
  return how == 'left' or not end_ms or tonumber(end_ms) <= now_ms
end

local function bring_back(name, entry)
  local job = name and read_entry(entry)
  if not job then
    redis.call('RPUSH', keys.ready, entry)
    counts.requeued = counts.requeued + 1
    return
  end
  local outcome = 'requeued'
  if how == 'left' then
    hold_until_expiry(keys.unique, job)
    make_ready(keys, job, with_attempt(entry, math.max(0, job.attempt - 1)), 'front')
  else
    outcome = recover_job(keys, job, entry, now_ms)
  end
  counts[outcome] = counts[outcome] + 1
end

-- Whether the lease belongs to a session whose heartbeat has expired. The list of such a
-- session is searched completely, in its own order.
local function is_of_ended_session(name)
  local session = name:match('^[^/]*/[^/]+')
  local end_ms = session and redis.call('ZSCORE', keys.workers, session)
  return end_ms and is_over(end_ms)
end

-- The named leases to take, grouped by their list.
local function named_by_list()
  local by_list = {}
  for i = 1, leases do
    local at = FIRST_LEASE + 2 * (i - 1)
    local name, list = ARGV[at], list_of(tonumber(ARGV[at + 1]))
    local end_ms = redis.call('ZSCORE', keys.leased, name)
    if end_ms and is_over(end_ms) and not is_of_ended_session(name) then
      by_list[list] = by_list[list] or {names = {}, is_wanted = {}}
      by_list[list].is_wanted[name] = true
      table.insert(by_list[list].names, name)
    end
  end
  return by_list
end

-- A lease without an element is forgotten, once the whole list was read.
local function take_named(list, names, is_wanted)
  local found, left = find_elements(list, is_wanted, #names, step)
  if left > 0 and not has_room(step) then has_more = 1 end
  for i = #names, 1, -1 do
    local element = found[names[i]]
    if element then
      bring_back(read_element(list, element))
      redis.call('LREM', list, -1, element)
    end
    if element or has_room(step) then redis.call('ZREM', keys.leased, names[i]) end
  end
end

-- Retires a session. Its list is only watched from now on, because a waiting move may
-- still fill it.
local function retire(session, end_ms)
  if end_ms then
    redis.call('ZADD', keys.retired, now_ms + watch_ms, session)
    redis.call('ZREM', keys.workers, session)
  elseif tonumber(redis.call('ZSCORE', keys.retired, session) or 0) <= now_ms then
    redis.call('ZREM', keys.retired, session)
  end
end

-- The elements of a list that must be taken back, newest first, as many as the step has
-- room for.
local function over_of(list, session_is_over)
  local found = {}
  walk(list, function(element)
    local name = read_element(list, element)
    local end_ms = name and redis.call('ZSCORE', keys.leased, name)
    if end_ms and is_over(end_ms) or not end_ms and session_is_over then
      if not has_room(step) then
        has_more = 1
        return true
      end
      found[#found + 1] = element
      count_job(step, element)
    end
  end)
  return found
end

-- Takes the newest first, so that the oldest job is at the very front in the end.
local function adopt(list, session, end_ms)
  for _, element in ipairs(over_of(list, is_over(end_ms))) do
    local name, entry = read_element(list, element)
    bring_back(name, entry)
    redis.call('LREM', list, 1, element)
    if name then redis.call('ZREM', keys.leased, name) end
  end
  if redis.call('EXISTS', list) == 0 then retire(session, end_ms) end
end

local function look_at(list, session)
  local end_ms = redis.call('ZSCORE', keys.workers, session)
  if is_over(end_ms) then
    adopt(list, session, end_ms)
  elseif redis.call('EXISTS', list) == 1 then
    local left_ms = math.ceil(end_ms - now_ms)
    next_ms = next_ms < 0 and left_ms or math.min(next_ms, left_ms)
  end
end

for list, named in pairs(named_by_list()) do
  if has_room(step) then
    take_named(list, named.names, named.is_wanted)
  else
    has_more = 1
  end
end
for i = #ARGV - FIRST_SESSION + 1, 1, -1 do
  look_at(list_of(i), ARGV[FIRST_SESSION + i - 1])
end

local lease_ms = next_in_ms(keys.leased, now_ms)
if lease_ms == 0 and how == 'over' then has_more = 1 end
if lease_ms >= 0 then next_ms = next_ms < 0 and lease_ms or math.min(next_ms, lease_ms) end
return {counts.requeued, counts.buried, has_more, next_ms}
