-- Read one page of ready jobs, next to be served first.
--
-- ?1 queue  ?2 ?3 sort keys of the last job seen  ?4 how many at most
-- Returns the two sort keys and what a view of the job shows.
SELECT -priority, turn,
       id, payload, headers, attempt, max_attempts, priority, unique_key, expires_at,
       last_error, at, since, worker, reason
FROM jobs LEFT JOIN bodies USING (job)
WHERE queue = ?1 AND state = 'ready' AND (-priority, turn) > (?2, ?3)
ORDER BY -priority, turn LIMIT ?4
