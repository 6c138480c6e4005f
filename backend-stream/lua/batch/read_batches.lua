#!lua flags=no-writes
-- Read the status of batches.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] 'one' for the batch with this id, 'after' for the batches after it
-- ARGV[2] id, or empty for the first batches
-- ARGV[3] how many at most
--
-- Returns {id of the last completion in `told`, the status of each batch, ...}.
--
-- Library: pattern, batch/records, moves
local keys = bind_keys()
local what, id, most = ARGV[1], ARGV[2], tonumber(ARGV[3])

local ids = {id}
if what == 'after' then
  local start = id == '' and '-' or '(' .. id
  ids = redis.call('ZRANGE', batch_key(keys, 'ids'), start, '+', 'BYLEX', 'LIMIT', 0, most)
end
local last = redis.call('XREVRANGE', batch_key(keys, 'told'), '+', '-', 'COUNT', 1)[1]
local known = {last and last[1] or '0-0'}
for _, one in ipairs(ids) do known[#known + 1] = status_of(keys, one) or nil end
return known
