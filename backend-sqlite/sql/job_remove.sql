-- Remove a job; its body goes by `body_remove`.
--
-- ?1 job
DELETE FROM jobs WHERE job = ?1
