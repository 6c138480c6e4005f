-- Let a job hold its unique key no longer.
--
-- ?1 job
UPDATE jobs SET unique_key = NULL WHERE job = ?1
