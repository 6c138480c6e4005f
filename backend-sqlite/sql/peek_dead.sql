-- Read one page of dead jobs, oldest first.
--
-- ?1 queue  ?2 ?3 sort keys of the last job seen  ?4 how many at most
-- ?5 whether bodies are wanted: 1 or 0
-- Returns the two sort keys and the columns of a job view.
SELECT since, job,
       id, iif(?5, payload, NULL), iif(?5, headers, NULL), attempt, max_attempts,
       priority, unique_key, expires_at, last_error, at, since, worker, reason, enqueued_at,
       (SELECT id FROM batches WHERE batches.batch = jobs.batch),
       NULL, NULL, lease_ms, keep_ms
FROM jobs LEFT JOIN bodies USING (job)
WHERE queue = ?1 AND state = 'dead' AND (since, job) > (?2, ?3)
ORDER BY since, job LIMIT ?4
