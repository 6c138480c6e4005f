#!lua flags=allow-oom
-- Wake another notifier, because this one had no listener left.
--
-- KEYS[1] wake  LIST  at most one token, for the notifiers
--
-- Returns how many tokens `wake` has.
--
-- Library: side_records
notify({wake = KEYS[1]})
return redis.call('LLEN', KEYS[1])
