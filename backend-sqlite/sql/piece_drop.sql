-- Drop waiting pieces of a batch. `body_remove` removes their bodies.
--
-- ?1 batch  ?2 how many at most
-- Returns job, id, keeps_id (1 or 0) and keep_ms (or null) of each.
DELETE FROM jobs
WHERE job IN (SELECT job FROM jobs
              WHERE batch = ?1 AND state IN ('ready', 'scheduled') LIMIT ?2)
RETURNING job, id, keeps_id, keep_ms
