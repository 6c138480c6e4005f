#!lua flags=no-writes
-- Read a page of all keys of the database, and sort its keys into ready jobs, leases
-- that are missing, and foreign keys.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] cursor, '0' to begin
-- ARGV[2] how many keys to read
-- ARGV[3] how many foreign keys to name
--
-- Returns {cursor of the next page, or '0' after the last, {item keys}, {processing
-- keys without a lease}, how many keys are foreign, {names of some of the foreign
-- keys}}.
--
-- Library: side_records, pattern, moves
local keys = bind_keys()
local cursor, count, to_name = ARGV[1], ARGV[2], tonumber(ARGV[3])

local items, processing, foreign_keys, named = {}, {}, 0, {}
local is_own = {}
for i = 1, BOOKKEEPING_KEYS + PATTERN_KEYS do is_own[KEYS[i]] = true end

local page = redis.call('SCAN', cursor, 'COUNT', count)
for _, name in ipairs(page[2]) do
  if name:sub(1, #PROCESSING) == PROCESSING then
    processing[#processing + 1] = name
  elseif is_item(name) then
    items[#items + 1] = name
  elseif not is_own[name] then
    foreign_keys = foreign_keys + 1
    if #named < to_name then named[#named + 1] = name end
  end
end

local orphans = {}
if #processing > 0 then
  local ends = redis.call('ZMSCORE', keys.leased, unpack(processing))
  for i, name in ipairs(processing) do
    if not ends[i] then orphans[#orphans + 1] = name end
  end
end
return {page[1], items, orphans, foreign_keys, named}
