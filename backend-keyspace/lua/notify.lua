#!lua flags=allow-oom
-- Let another notifier notify, because nobody heard this one.
--
-- KEYS[1] wake  LIST  at most one token, for the notifiers
--
-- Returns 1.
local keys = {wake = KEYS[1]}

notify(keys)
return 1
