-- Find a job that can be cancelled, which is any job that is not dead.
--
-- ?1 queue  ?2 id
-- Returns job, keeps_id, state, token, lease end (ms) and batch (or null); or no row.
SELECT job, keeps_id, state, token, at, batch FROM jobs
WHERE queue = ?1 AND id = ?2 AND state <> 'dead'
