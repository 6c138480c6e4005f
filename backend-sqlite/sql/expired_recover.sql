-- Take back jobs whose lease has ended, oldest first: to their old turn, or to the
-- dead letters when that was their last attempt (R9, R11).
--
-- ?1 queue  ?2 now (ms)  ?3 how many at most
-- Returns the new state of each.
UPDATE jobs
SET state = iif(attempt < max_attempts, 'ready', 'dead'),
    turn = iif(attempt < max_attempts, turn, NULL),
    since = iif(attempt < max_attempts, NULL, ?2),
    reason = iif(attempt < max_attempts, NULL,
      'out of attempts: the lease expired on attempt ' || attempt || ' of '
      || max_attempts || ', so worker ' || worker || ' died or froze'),
    at = NULL, token = NULL, worker = NULL
WHERE job IN (SELECT job FROM jobs
              WHERE queue = ?1 AND state = 'leased' AND at <= ?2
              ORDER BY at, job LIMIT ?3)
RETURNING state
