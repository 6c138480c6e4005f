#!lua flags=allow-oom
-- Store the wake-up token, so that another notifier wakes: the one that took the token
-- has no waiting claim.
--
-- KEYS[1] wake  LIST  at most one token, for the notifiers
--
-- Returns 1.
--
-- Library: side_records
local keys = {wake = KEYS[1]}

notify(keys)
return 1
