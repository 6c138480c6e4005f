#!lua flags=allow-oom
-- write_marker
-- Write the owner of a queue before its first write. Existing values stay, but a marker
-- of an earlier format gets the present number: other clients of that format cannot read
-- what this one writes.
--
-- KEYS[1...n] STRING  the keys that name the owner: the marker first
-- KEYS[n+1...]        all other keys that a queue of any pattern may have
-- ARGV[1] 'first', or 'again' when the caller knows that the queue is its own
-- ARGV[2...] the n values for the keys that name the owner
--
-- Returns the n values that are stored now, or false if other keys exist without a
-- marker and the caller does not know their owner: then nothing was written.
local word, count = ARGV[1], #ARGV - 1

-- Returns the stored marker, with the format of this client's own if that is newer.
local function raised(stored, own)
  local format, backend, options = stored:match('^relq (%d+) (%S+)(.*)$')
  local own_format, own_backend = own:match('^relq (%d+) (%S+)')
  if backend ~= own_backend or tonumber(format) >= tonumber(own_format) then return stored end
  return 'relq ' .. own_format .. ' ' .. backend .. options
end

local values, is_others = {}, false
for i = 1, count do
  values[i] = redis.call('GET', KEYS[i]) or ARGV[i + 1]
  is_others = is_others or i > 1 and values[i] ~= ARGV[i + 1]
end
local marker = raised(values[1], ARGV[2])
if marker ~= values[1] and not is_others then
  redis.call('SET', KEYS[1], marker)
  values[1] = marker
end
if is_others or values[1] ~= ARGV[2] then return values end
local is_marked = redis.call('EXISTS', KEYS[1]) == 1
if not is_marked and word == 'first' and redis.call('EXISTS', unpack(KEYS, 2)) > 0 then
  return false
end
for i = 1, count do redis.call('SETNX', KEYS[i], ARGV[i + 1]) end
return values
