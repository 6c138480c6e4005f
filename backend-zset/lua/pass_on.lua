#!lua flags=allow-oom
-- Wake another notifier, because this one had no listener left.
--
-- KEYS[1] handed  LIST  elements moved by a notifier
-- KEYS[2] ready   LIST  where they came from
-- KEYS[3] wake    LIST  at most one token, for the notifiers
-- ARGV[1] maximum number of elements
--
-- Returns how many elements were moved back.
--
-- Library: side_records
local handed, ready, wake = KEYS[1], KEYS[2], KEYS[3]
local most = tonumber(ARGV[1])

-- A key of another type fails here, before the first write.
redis.call('LLEN', wake)
local moved = 0
while moved < most and redis.call('LMOVE', handed, ready, 'LEFT', 'RIGHT') do
  moved = moved + 1
end
notify({wake = wake})
return moved
