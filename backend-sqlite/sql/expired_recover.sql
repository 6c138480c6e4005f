-- Recover jobs whose lease has expired, oldest first: they become ready with their old
-- turn, or dead if that was their last attempt (R9, R11). A piece of a cancelled batch
-- always becomes ready; it is dropped with the waiting pieces (B7). A note that the
-- lease expired is added to the last error, of which the last 8,192 characters are
-- kept.
--
-- ?1 queue  ?2 now (ms)  ?3 how many at most
-- Returns the new state of each.
UPDATE jobs
SET state = iif(expired.returns, 'ready', 'dead'),
    turn = iif(expired.returns, turn, NULL),
    since = iif(expired.returns, NULL, ?2),
    reason = iif(expired.returns, NULL,
      'out of attempts: the lease expired on attempt ' || attempt || ' of '
      || max_attempts || ', so worker ' || worker || ' died or froze'),
    last_error = substr(coalesce(last_error || '; ', '')
      || 'attempt ' || attempt || ': lease ended, no heartbeat', -8192),
    at = NULL, token = NULL, worker = NULL
FROM (SELECT held.job AS key,
             held.attempt < held.max_attempts
               OR EXISTS (SELECT 1 FROM batches
                          WHERE batches.batch = held.batch
                            AND batches.state IN ('cancelling', 'cancelled')) AS returns
      FROM jobs AS held
      WHERE held.queue = ?1 AND held.state = 'leased' AND held.at <= ?2
      ORDER BY held.at, held.job LIMIT ?3) AS expired
WHERE jobs.job = expired.key
RETURNING state
