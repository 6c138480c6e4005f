-- Read a job in any state by its id.
--
-- ?1 queue  ?2 id
-- Returns two columns without a meaning, the columns of a job view, and the state; or no
-- row.
SELECT 0, job,
       id, payload, headers, attempt, max_attempts,
       priority, unique_key, expires_at, last_error, at, since, worker, reason, enqueued_at,
       (SELECT id FROM batches WHERE batches.batch = jobs.batch),
       (SELECT leader FROM followers WHERE followers.job = jobs.job),
       (SELECT delay_ms FROM followers WHERE followers.job = jobs.job),
       lease_ms, keep_ms,
       state
FROM jobs LEFT JOIN bodies USING (job)
WHERE queue = ?1 AND id = ?2
