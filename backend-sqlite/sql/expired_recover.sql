-- Recover jobs whose lease has expired, oldest first: they become ready with their old
-- turn, or dead if that was their last attempt (R9, R11). A piece of a cancelled batch
-- always becomes ready; it is dropped with the waiting pieces (B7). A note that the
-- lease expired is added to the last error. If that has more than 8,192 bytes then, only
-- the newest notes are kept (R11). The text is cut as a BLOB, whose length is in bytes. The
-- result begins at a note, so that a character which is cut in half is dropped.
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
    last_error = (
      SELECT CAST(iif(length(whole) <= 8192, whole,
          substr(kept, instr(kept, CAST('; attempt ' AS BLOB)) + 2)) AS TEXT)
      FROM (SELECT whole, substr(whole, -8192) AS kept
            FROM (SELECT CAST(coalesce(nullif(last_error, '') || '; ', '')
                    || 'attempt ' || attempt || ': lease ended, no heartbeat'
                    AS BLOB) AS whole))),
    at = NULL, token = NULL, worker = NULL
FROM (SELECT held.job AS key,
             held.attempt < held.max_attempts
               OR EXISTS (SELECT 1 FROM batches
                          WHERE batches.batch = held.batch
                            AND batches.state IN ('cancelling', 'cancelled')) AS returns
      FROM jobs AS held
      WHERE held.queue = ?1 AND held.state = 'leased' AND held.at <= ?2
      ORDER BY held.at LIMIT ?3) AS expired
WHERE jobs.job = expired.key
RETURNING state
