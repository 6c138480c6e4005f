-- Release the followers of a job that is done, in the order of their pushes: each becomes
-- ready or, if it has a delay, scheduled.
--
-- ?1 queue  ?2 id of the leader  ?3 first turn to give out  ?4 now (ms)
UPDATE jobs
SET state = iif(held.delay_ms = 0, 'ready', 'scheduled'),
    at = iif(held.delay_ms = 0, NULL, ?4 + held.delay_ms),
    turn = iif(held.delay_ms = 0, ?3 + held.rank, NULL),
    place = iif(held.delay_ms = 0, NULL, ?3 + held.rank),
    ready_at = iif(held.delay_ms = 0, ?4, NULL)
FROM (SELECT job, delay_ms, row_number() OVER (ORDER BY job) - 1 AS rank FROM followers
      WHERE queue = ?1 AND leader = ?2 AND orphaned = 0) AS held
WHERE jobs.job = held.job AND at = 9223372036854775807
