-- Remove a job's body.
--
-- ?1 job
DELETE FROM bodies WHERE job = ?1
