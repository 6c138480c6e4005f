#!lua flags=allow-oom
-- Let another notifier notify, because nobody heard this one.
--
-- KEYS[1] wake  LIST  at most one token, for the notifiers
--
-- Returns how many tokens there are.
notify({wake = KEYS[1]})
return redis.call('LLEN', KEYS[1])
