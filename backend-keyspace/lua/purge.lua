#!lua flags=allow-oom
-- Remove every scheduled and dead job, all side records, and the ready and leased jobs
-- of a page of the database. A paused queue stays paused.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] cursor of the page, '0' to begin
-- ARGV[2] how many keys a page has, about
--
-- Returns {how many jobs were removed, cursor of the next page, or '0' after the last}.
--
-- Library: pattern, moves
local keys = bind_keys()
local cursor, count = ARGV[1], ARGV[2]

local function is_job(name)
  return is_item(name)
    or name:sub(1, #PROCESSING) == PROCESSING and redis.call('TYPE', name).ok == 'string'
end

-- If a key has another type, the script fails here, before its first write.
check_ready(keys)
local removed = redis.call('ZCARD', keys.later) + redis.call('ZCARD', keys.dead)
redis.call('UNLINK', keys.later, keys.dead, keys.jobs, keys.errors, keys.unique, keys.ids,
  keys.calls, keys.answers, keys.cancelled, keys.totals, keys.wake)
local page = redis.call('SCAN', cursor, 'COUNT', count)
local jobs = {}
for _, name in ipairs(page[2]) do
  if is_job(name) then jobs[#jobs + 1] = name end
end
if #jobs > 0 then
  removed = removed + redis.call('UNLINK', unpack(jobs))
  redis.call('ZREM', keys.leased, unpack(jobs))
end
return {removed, page[1]}
