-- Remove a job; `body_remove` removes its body.
--
-- ?1 job
DELETE FROM jobs WHERE job = ?1
