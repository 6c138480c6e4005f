-- Move a scheduled job to another time.
--
-- ?1 job  ?2 due (ms)
UPDATE jobs SET at = ?2 WHERE job = ?1 AND state = 'scheduled'
