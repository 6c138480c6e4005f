-- Read the next ready pieces of a batch, with their bodies.
--
-- ?1 batch  ?2 how many at most
-- Returns job, id, priority, attempt, max attempts, lease of its own, expiry,
-- payload (null when the body is missing), headers, time of the push (ms or
-- null) and for how long its result is kept (ms or null).
SELECT job, id, priority, attempt, max_attempts, lease_ms, expires_at, payload, headers,
       enqueued_at, keep_ms
FROM jobs LEFT JOIN bodies USING (job)
WHERE batch = ?1 AND state = 'ready'
ORDER BY turn LIMIT ?2
