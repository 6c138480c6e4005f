-- Forget that a job follows another one.
--
-- ?1 job
-- Returns the id of the leader and whether the job was to be cancelled (1 or 0), or no
-- row.
DELETE FROM followers WHERE job = ?1 RETURNING leader, orphaned
