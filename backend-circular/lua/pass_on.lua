#!lua flags=allow-oom
-- Store the wake-up token, so that another notifier wakes: the one that took the token
-- has no waiting claim.
--
-- KEYS[1] wake  LIST  at most one token, for the notifiers
--
-- Returns how many tokens `wake` has.
--
-- Library: side_records
notify({wake = KEYS[1]})
return redis.call('LLEN', KEYS[1])
