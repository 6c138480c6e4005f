#!lua flags=allow-oom
-- Free the side records of jobs that another client has deleted: a page of the unique
-- keys, of the clients' ids and of the errors. The id of such a job is remembered as
-- long as that of any job that ended.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] cursor of the unique keys, '0' to begin
-- ARGV[2] cursor of the ids
-- ARGV[3] cursor of the errors
-- ARGV[4] how many of each a page has
-- ARGV[5] maximum number of leases, because all are read: the script does nothing if
--         there are more
-- ARGV[6] how long an id is remembered after its job has ended (ms)
--
-- Returns {how many jobs were deleted, the three cursors of the next pages}.
--
-- Library: entry, pattern, moves
local keys = bind_keys()
local cursors, count, most_leases = {ARGV[1], ARGV[2], ARGV[3]}, ARGV[4], tonumber(ARGV[5])
local window_ms = tonumber(ARGV[6])
local forget_at = server_ms() + window_ms

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
if redis.call('EXISTS', keys.unique, keys.ids, keys.errors) == 0
  or redis.call('ZCARD', keys.leased) > most_leases then
  return {0, unpack(cursors)}
end

local is_leased = {}
for _, lease in ipairs(redis.call('ZRANGE', keys.leased, 0, -1)) do
  is_leased[id_of_lease(lease)] = true
end

-- Between any two scripts, an existing job is ready, leased, scheduled or dead. A job
-- that another client has renamed to its processing key has no lease yet.
local deleted, freed = {}, 0
local function is_deleted(id)
  if deleted[id] == nil then
    deleted[id] = not is_leased[id] and redis.call('HEXISTS', keys.jobs, id) == 0
      and redis.call('EXISTS', ITEM .. id, PROCESSING .. id) == 0
    if deleted[id] then freed = freed + 1 end
  end
  return deleted[id]
end

-- Calls `look` with each name and value of a page, and stores the next cursor.
local function for_page(number, scan, key, look)
  local page = redis.call(scan, key, cursors[number], 'COUNT', count)
  for i = 1, #page[2], 2 do look(page[2][i], page[2][i + 1]) end
  cursors[number] = page[1]
end

for_page(1, 'HSCAN', keys.unique, function(key, holder)
  local id = holder:match('^%d+ (.*)$')
  if id and is_deleted(id) then redis.call('HDEL', keys.unique, key) end
end)
for_page(2, 'ZSCAN', keys.ids, function(id, known_until)
  if known_until == 'inf' and is_deleted(id) then redis.call('ZADD', keys.ids, forget_at, id) end
end)
for_page(3, 'HSCAN', keys.errors, function(id)
  if is_deleted(id) then redis.call('HDEL', keys.errors, id) end
end)
return {freed, unpack(cursors)}
