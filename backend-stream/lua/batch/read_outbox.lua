#!lua flags=no-writes
-- Read completions whose job must be pushed to another queue.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] how many at most; fewer are read when they are large
--
-- Returns {how many there are, id, queue, entry, delay (ms), expiry (ms from the push, 0
-- for none), ...}.
--
-- Library: entry, pattern, moves
local keys = bind_keys()
local most = tonumber(ARGV[1])

local letters, step = {redis.call('SCARD', batch_key(keys, 'outbox'))}, new_step(most)
for _, id in ipairs(redis.call('SRANDMEMBER', batch_key(keys, 'outbox'), most)) do
  local letter = redis.call('HMGET', batch_key(keys, 'record', id), 'completion_queue',
    'completion', 'completion_delay_ms', 'completion_expires_ms')
  if not has_room(step) then break end
  count_job(step, letter[2])
  letters[#letters + 1] = id
  -- A damaged completion does not block the others.
  for i = 1, 4 do letters[#letters + 1] = letter[i] or (i > 2 and '0' or '') end
end
return letters
