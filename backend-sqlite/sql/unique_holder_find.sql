-- Find the job that holds a unique key.
--
-- ?1 queue  ?2 unique key
-- Returns job, id, state and expiry (ms, or null); or no row.
SELECT job, id, state, expires_at FROM jobs
WHERE queue = ?1 AND unique_key = ?2 AND unique_key IS NOT NULL AND state <> 'dead'
