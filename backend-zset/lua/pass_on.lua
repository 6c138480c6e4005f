#!lua flags=allow-oom
-- Move elements back to the queue, and store the wake-up token, so that another
-- notifier wakes: the one that moved the elements has no waiting claim.
--
-- KEYS[1] handed  LIST  elements that a notifier has moved here from ready
-- KEYS[2] ready   LIST  elements of normal priority, oldest on the right
-- KEYS[3] wake    LIST  at most one token, for the notifiers
-- ARGV[1] maximum number of elements
--
-- Returns how many elements were moved back.
--
-- Library: side_records
local handed, ready, wake = KEYS[1], KEYS[2], KEYS[3]
local most = tonumber(ARGV[1])

-- If a key has another type, the script fails here, before its first write.
redis.call('LLEN', wake)
local moved = 0
while moved < most and redis.call('LMOVE', handed, ready, 'LEFT', 'RIGHT') do
  moved = moved + 1
end
notify({wake = wake})
return moved
