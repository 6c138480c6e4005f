-- Find the jobs that leases hold. The token decides (R7).
--
-- ?1 queue
-- Of each lease: ?2 job  ?3 token
-- Returns token, id, keeps_id (1 or 0), keep_ms (or null), attempt, max attempts, batch (or
-- null) and lease end (ms); no row for a lease that was lost.
SELECT token, id, keeps_id, keep_ms, attempt, max_attempts, batch, at
FROM (VALUES /*each*/(?2, ?3)/*each*/) AS lease CROSS JOIN jobs
WHERE job = lease.column1 AND token = lease.column2 AND queue = ?1
