-- Move a scheduled job to another time, behind the jobs that are due at that time. A held
-- follower stays where it is.
--
-- ?1 job  ?2 due (ms)  ?3 place
UPDATE jobs SET at = ?2, place = ?3 
WHERE job = ?1 AND state = 'scheduled' AND at < 9223372036854775807
