-- Find a dead job by its id.
--
-- ?1 queue  ?2 id
-- Returns since, job, id, keeps_id, keep_ms (or null) and unique key; or no row.
SELECT since, job, id, keeps_id, keep_ms, unique_key FROM jobs
WHERE queue = ?1 AND id = ?2 AND state = 'dead'
