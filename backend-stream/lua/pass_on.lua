#!lua flags=allow-oom
-- Let another doorbell ring, because nobody heard this one.
--
-- KEYS[1] wake  LIST  at most one token, for the doorbells
--
-- Returns how many tokens there are.
ring({wake = KEYS[1]})
return redis.call('LLEN', KEYS[1])
