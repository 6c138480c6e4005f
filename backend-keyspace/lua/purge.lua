#!lua flags=allow-oom
-- Remove every scheduled and dead job, all side records, and the ready and leased jobs
-- of some pages of the database. A paused queue stays paused.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] cursor of the first page, '0' to begin
-- ARGV[2] how many keys a page has
-- ARGV[3] how many pages at most
--
-- Returns {how many jobs were removed, cursor of the next page or '0'}.
--
-- Library: pattern, moves
local keys = bind_keys()
local cursor, count, pages = ARGV[1], ARGV[2], tonumber(ARGV[3])

local function is_job(name)
  return is_item(name)
    or name:sub(1, #PROCESSING) == PROCESSING and redis.call('TYPE', name).ok == 'string'
end

-- A key of another type fails here, before the first write.
check_ready(keys)
local removed = redis.call('ZCARD', keys.later) + redis.call('ZCARD', keys.dead)
redis.call('UNLINK', keys.later, keys.dead, keys.jobs, keys.errors, keys.unique, keys.ids,
  keys.calls, keys.answers, keys.cancelled, keys.totals, keys.wake)
for _ = 1, pages do
  local page = redis.call('SCAN', cursor, 'COUNT', count)
  for _, name in ipairs(page[2]) do
    if is_job(name) then
      removed = removed + redis.call('UNLINK', name)
      redis.call('ZREM', keys.leased, name)
    end
  end
  cursor = page[1]
  if cursor == '0' then break end
end
return {removed, cursor}
