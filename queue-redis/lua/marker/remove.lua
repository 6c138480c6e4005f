#!lua flags=allow-oom
-- remove_marker
-- Remove the marker of a queue that has no other key.
--
-- KEYS[1...n] STRING  the keys that name the owner: the marker first
-- KEYS[n+1...]        all other keys that a queue of any pattern may have, and Q itself
-- ARGV[1] 'keys', or 'database' if all keys of the database belong to the queue
-- ARGV[2...] the n values that the caller expects in the keys that name the owner
--
-- Returns 1 if there is no marker now. Returns 0, and removes nothing, if the queue has
-- other keys, or if the marker is not the caller's.
local scope, count = ARGV[1], #ARGV - 1

-- Whether a value is the caller's own, also if it is a marker of an earlier format.
local function is_own(value, own)
  local format, owner = value:match('^relq (%d+) (.*)$')
  local own_format, own_owner = own:match('^relq (%d+) (.*)$')
  if not format or not own_format then return value == own end
  return owner == own_owner and tonumber(format) <= tonumber(own_format)
end

local found = 0
for i = 1, count do
  local value = redis.call('GET', KEYS[i])
  if value and not is_own(value, ARGV[i + 1]) then return 0 end
  if value then found = found + 1 end
end
if redis.call('EXISTS', unpack(KEYS, count + 1)) > 0 then return 0 end
if scope == 'database' and redis.call('DBSIZE') > found then return 0 end
redis.call('UNLINK', unpack(KEYS, 1, count))
return 1
