-- Find a job that can be cancelled, which is any job that is not dead.
--
-- ?1 queue  ?2 id
-- Returns job, id, keeps_id, keep_ms (or null), state, token, lease end (ms) and batch
-- (or null); or no row.
SELECT job, id, keeps_id, keep_ms, state, token, at, batch FROM jobs
WHERE queue = ?1 AND id = ?2 AND state <> 'dead'
