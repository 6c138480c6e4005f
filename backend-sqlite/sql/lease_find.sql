-- Find the job that a lease holds. The token decides (R7).
--
-- ?1 job  ?2 token  ?3 queue
-- Returns id, keeps_id (1 or 0), keep_ms (or null), attempt, max attempts, batch (or
-- null) and lease end (ms); or no row when the lease was lost.
SELECT id, keeps_id, keep_ms, attempt, max_attempts, batch, at FROM jobs
WHERE job = ?1 AND token = ?2 AND queue = ?3
