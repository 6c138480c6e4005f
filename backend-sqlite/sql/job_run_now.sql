-- Make a job ready, as if it were due, unless it is not scheduled any more.
--
-- ?1 job  ?2 turn  ?3 now (ms)
UPDATE jobs SET state = 'ready', turn = ?2, ready_at = ?3, at = NULL, place = NULL
WHERE job = ?1 AND state = 'scheduled'
