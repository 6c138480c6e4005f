-- Move a scheduled job to another time, behind the jobs that are due at that time.
--
-- ?1 job  ?2 due (ms)  ?3 place
UPDATE jobs SET at = ?2, place = ?3 WHERE job = ?1
