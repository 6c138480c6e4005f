-- Read the next ready jobs that belong to no batch, with their bodies.
--
-- ?1 queue  ?2 how many at most
-- Returns job, id, priority, attempt, max attempts, lease of its own, expiry,
-- payload (null when the body is missing), headers, time of the push (ms or
-- null) and for how long its result is kept (ms or null).
SELECT job, id, priority, attempt, max_attempts, lease_ms, expires_at, payload, headers,
       enqueued_at, keep_ms
FROM jobs LEFT JOIN bodies USING (job)
WHERE queue = ?1 AND state = 'ready' AND batch IS NULL
ORDER BY -priority, turn LIMIT ?2
