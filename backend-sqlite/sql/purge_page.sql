-- Remove one page of jobs in any state. `body_remove` removes their bodies.
--
-- ?1 queue  ?2 how many at most
-- Returns job, id and keep_ms (or null) of each removed job.
DELETE FROM jobs
WHERE job IN (SELECT job FROM jobs WHERE queue = ?1 ORDER BY id LIMIT ?2)
RETURNING job, id, keep_ms
