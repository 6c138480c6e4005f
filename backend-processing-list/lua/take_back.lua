#!lua flags=allow-oom
-- Take jobs back from the lists of sessions: a page of the expired ones, or of all
-- those of a worker that is released.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs; then
-- KEYS[...]  lists  LIST  the processing lists of the sessions
-- ARGV[1] 'over' to take expired jobs and count their attempt; 'left' to take all jobs
--         without counting it
-- ARGV[2] how many at most; fewer when the entries are large
-- ARGV[3] for how long the list of a retired session is watched (ms)
-- ARGV[4...] the sessions, the earliest end first
--
-- Returns {how many were made ready, how many were buried, 1 if there is more else 0,
-- ms until the next lease expires or -1}.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local how, page, watch_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local FIRST_SESSION = 4
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
for i = 1, #KEYS - BOOKKEEPING_KEYS - PATTERN_KEYS do redis.call('LLEN', list_of(i)) end
local counts, step, has_more, next_ms = {requeued = 0, buried = 0}, new_step(page), 0, -1

-- Retires a session. From now on recovery only watches its list, because a blocking
-- move that still waits may put a job there.
local function retire(session, end_ms)
  if end_ms then
    redis.call('ZADD', keys.retired, now_ms + watch_ms, session)
    redis.call('ZREM', keys.workers, session)
  elseif tonumber(redis.call('ZSCORE', keys.retired, session) or 0) <= now_ms then
    redis.call('ZREM', keys.retired, session)
  end
end

-- Returns the elements of a list that must be taken back, newest first, as many as the
-- step has room for. A session ends with its last lease, so nearly always all elements
-- of an ended session are taken back.
local function over_of(list, session_is_over)
  local found = {}
  local function look(element)
    local name = name_of(list, element)
    local end_ms = name and redis.call('ZSCORE', keys.leased, name)
    if end_ms and is_over(how, end_ms, now_ms) or not end_ms and session_is_over then
      found[#found + 1] = element
      count_job(step, element)
    end
    return not has_room(step)
  end
  if has_room(step) then walk(list, look) end
  -- The other elements are not read: a large one takes long to read.
  if not has_room(step) and redis.call('LLEN', list) > #found then has_more = 1 end
  return found
end

local function recover(job, entry)
  return recover_job(keys, job, entry, now_ms)
end

-- Takes the newest first, so that the oldest job is at the very front in the end.
local function adopt(list, session, end_ms)
  for _, element in ipairs(over_of(list, is_over(how, end_ms, now_ms))) do
    local name, entry_at = read_element(list, element)
    bring_back(keys, how, element, entry_at, counts, recover)
    redis.call('LREM', list, 1, element)
    if name then redis.call('ZREM', keys.leased, name) end
  end
  if redis.call('EXISTS', list) == 0 then retire(session, end_ms) end
end

local function look_at(list, session)
  local end_ms = redis.call('ZSCORE', keys.workers, session)
  if is_over(how, end_ms, now_ms) then
    adopt(list, session, end_ms)
  elseif redis.call('EXISTS', list) == 1 then
    local left_ms = math.ceil(end_ms - now_ms)
    next_ms = next_ms < 0 and left_ms or math.min(next_ms, left_ms)
  end
end

for i = #ARGV - FIRST_SESSION + 1, 1, -1 do
  look_at(list_of(i), ARGV[FIRST_SESSION + i - 1])
end

local lease_ms = next_in_ms(keys.leased, now_ms)
if lease_ms == 0 and how == 'over' then has_more = 1 end
if lease_ms >= 0 then next_ms = next_ms < 0 and lease_ms or math.min(next_ms, lease_ms) end
return {counts.requeued, counts.buried, has_more, next_ms}
