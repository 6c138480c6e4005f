#!lua flags=no-writes
-- Read completions whose job must be pushed to another queue.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] how many at most
--
-- Returns {id, queue, entry, delay (ms), expiry (ms from the push, 0 for none), ...}.
--
-- Library: pattern, moves
local keys = bind_keys()
local most = tonumber(ARGV[1])

local letters = {}
for _, id in ipairs(redis.call('SRANDMEMBER', batch_key(keys, 'outbox'), most)) do
  local letter = redis.call('HMGET', batch_key(keys, 'record', id), 'completion_queue',
    'completion', 'completion_delay_ms', 'completion_expires_ms')
  letters[#letters + 1] = id
  -- A damaged completion does not block the others.
  for i = 1, 4 do letters[#letters + 1] = letter[i] or (i > 2 and '0' or '') end
end
return letters
