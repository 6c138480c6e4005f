-- Find the job that holds a unique key.
--
-- ?1 queue  ?2 unique key
-- Returns job, id, state, expiry (ms, or null) and whether it is a held follower (1 or 0);
-- or no row.
SELECT job, id, state, expires_at, state = 'scheduled' AND at = 9223372036854775807
FROM jobs
WHERE queue = ?1 AND unique_key = ?2 AND state <> 'dead'
