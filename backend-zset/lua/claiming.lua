-- A claim: reads ready jobs, leases them, and removes them from where they were ready.
-- Needs leasing.lua, pattern.lua, and relq-redis's entry.lua and side_records.lua.

-- The server's time: microseconds as text, and milliseconds as a number.
local function server_time()
  local time = redis.call('TIME')
  local us = ('00000' .. time[2]):sub(-6)
  return time[1] .. us, tonumber(time[1] .. us:sub(1, 3))
end

-- Appends the entries of ranked jobs to `elements`, and their ids to `ranked_ids`,
-- until the budget is used up.
local function take_ranked(ranked, jobs, ranks, budget, elements, ranked_ids)
  if budget.jobs == 0 then return end
  local ids = redis.call('ZRANGE', ranked, ranks[1], ranks[2], 'BYSCORE',
    'LIMIT', 0, budget.jobs)
  local first, page, page_bytes = 1, nil, 0
  while first <= #ids and budget.jobs > 0 do
    page = math.min(next_page(budget, page, page_bytes), #ids - first + 1)
    page_bytes = 0
    local entries = redis.call('HMGET', jobs, unpack(ids, first, first + page - 1))
    for i = 1, page do
      local entry = entries[i]
      if entry and not may_take(budget, entry) then return end
      ranked_ids[#ranked_ids + 1] = ids[first + i - 1]
      if entry then
        elements[#elements + 1], page_bytes = entry, page_bytes + #entry
      end
    end
    first = first + page
  end
end

-- Removes `count` elements from the tail of a list. The usual arguments are texts,
-- because the server would have to format numbers.
local function drop_from_tail(list, count)
  if count > 0 then
    redis.call('LTRIM', list, '0', count == 1 and '-2' or -count - 1)
  end
end

-- Writes the leases. If the second write fails, undoes the first one and returns the
-- error, because Redis does not undo the writes of a script that fails.
local function write_leases(held, fields, leased, ends)
  redis.call('HSET', held, unpack(fields))
  local written = redis.pcall('ZADD', leased, unpack(ends))
  if type(written) ~= 'table' then return nil end
  for i = 1, #fields, 2 do redis.call('HDEL', held, fields[i]) end
  return written
end

-- Whole milliseconds until the next scheduled job is due, or -1 if there is none. Held
-- jobs, whose score is infinite, have no due time.
local function due_in_ms(later, now_ms)
  local due = redis.call('ZRANGE', later, 0, 0, 'WITHSCORES')[2]
  if not due or due == 'inf' then return -1 end
  return math.max(0, math.floor(due) - now_ms)
end

-- Removes claimed jobs from `ranked`. Wakes a notifier if there are more.
local function drop_ranked(ranked, jobs, ranked_ids, wake)
  redis.call('ZREM', ranked, unpack(ranked_ids))
  redis.call('HDEL', jobs, unpack(ranked_ids))
  if redis.call('EXISTS', ranked) == 1 then notify({wake = wake}) end
end

-- How many times a claim looks for jobs while it finds only ids without an entry. This
-- bounds the script when another client has removed very many entries.
local MOST_LOOKS = 100

-- The whole of claim.lua, which documents the keys, the arguments and the result. `look`
-- counts the calls of this function, from 1 or nil.
local function claim(look)
  local ready, handed, ranked, later, leased, held, unique, paused, wake, jobs =
    unpack(KEYS)
  local worker, nonce, lease_ms, wanted = unpack(ARGV)
  local now_us, now_ms = server_time()
  local elements, budget = {}, new_budget(tonumber(wanted), STEP_BYTES)
  local due_ms, from_handed, ranked_ids = -1, 0, nil
  -- Most queues have none of these keys most of the time: one command checks all four.
  if redis.call('EXISTS', paused, later, ranked, handed) > 0 then
    if redis.call('EXISTS', paused) == 1 then return {now_us, 1, -1} end
    due_ms, ranked_ids = due_in_ms(later, now_ms), {}
    take_ranked(ranked, jobs, {'-inf', NORMAL_RANKS}, budget, elements, ranked_ids)
    from_handed = take_from_tail(handed, budget, elements)
  end
  local from_ready = take_from_tail(ready, budget, elements)
  if ranked_ids then
    take_ranked(ranked, jobs, {NORMAL_RANKS, '+inf'}, budget, elements, ranked_ids)
  end
  local count = #elements
  local has_ranked = ranked_ids and #ranked_ids > 0
  -- If a key has another type, the script fails here, before its first write.
  if has_ranked then redis.call('LLEN', wake) end
  if has_ranked and count == 0 then
    -- Another client has removed the entries of these jobs. There may be others behind.
    drop_ranked(ranked, jobs, ranked_ids, wake)
    if (look or 1) < MOST_LOOKS then return claim((look or 1) + 1) end
  end
  if count == 0 then return {now_us, 0, due_ms} end
  local name = worker .. '/' .. now_us .. '/' .. nonce .. '-'
  local fields, ends, expiring = lease_all(elements, name, now_ms, tonumber(lease_ms))
  local failed = write_leases(held, fields, leased, ends)
  if failed then return failed end
  -- A leased job cannot expire, so its unique key must not expire either.
  for _, job in ipairs(expiring) do hold_until(unique, job, 0) end
  drop_from_tail(handed, from_handed)
  drop_from_tail(ready, from_ready)
  if has_ranked then drop_ranked(ranked, jobs, ranked_ids, wake) end
  elements[count + 1], elements[count + 2], elements[count + 3] = now_us, 0, due_ms
  return elements
end
