-- Read one page of scheduled jobs, the held followers first, and then the last due.
--
-- ?1 queue  ?2 ?3 sort keys of the last job seen  ?4 how many at most
-- ?5 whether bodies are wanted: 1 or 0
-- Returns the two sort keys and the columns of a job view.
SELECT at, place,
       id, iif(?5, payload, NULL), iif(?5, headers, NULL), attempt, max_attempts,
       priority, unique_key, expires_at, last_error, at, since, worker, reason, enqueued_at,
       (SELECT id FROM batches WHERE batches.batch = jobs.batch),
       (SELECT leader FROM followers WHERE followers.job = jobs.job),
       (SELECT delay_ms FROM followers WHERE followers.job = jobs.job),
       lease_ms, keep_ms
FROM jobs LEFT JOIN bodies USING (job)
WHERE queue = ?1 AND state = 'scheduled' AND (at, place) < (?2, ?3)
ORDER BY at DESC, place DESC LIMIT ?4
