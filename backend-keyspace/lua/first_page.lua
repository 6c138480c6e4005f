#!lua flags=no-writes
-- first_page
-- Look for a foreign key in the first page of the database.
--
-- KEYS[1...] the keys of the queue, except those of jobs
-- ARGV[1] how many keys to read
-- ARGV[2] the prefix of the keys of ready jobs, which are strings
-- ARGV[3] the prefix of the keys of leased jobs
--
-- Returns {cursor of the next page, or '0' after the last, a foreign key or false}.
local count, item, processing = ARGV[1], ARGV[2], ARGV[3]

local is_own = {}
for _, key in ipairs(KEYS) do is_own[key] = true end

local function is_foreign(name)
  if is_own[name] or name:sub(1, #processing) == processing then return false end
  return name:sub(1, #item) ~= item or redis.call('TYPE', name).ok ~= 'string'
end

local page = redis.call('SCAN', '0', 'COUNT', count)
for _, name in ipairs(page[2]) do
  if is_foreign(name) then return {page[1], name} end
end
return {page[1], false}
