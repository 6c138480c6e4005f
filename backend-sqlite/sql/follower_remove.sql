-- Forget that a job follows another one.
--
-- ?1 job
DELETE FROM followers WHERE job = ?1
