-- Bury a job.
--
-- ?1 job  ?2 now (ms)  ?3 reason  ?4 last error, or null to keep the one it has
UPDATE jobs
SET state = 'dead', since = ?2, reason = ?3, last_error = coalesce(?4, last_error),
    turn = NULL, place = NULL, at = NULL, token = NULL, worker = NULL
WHERE job = ?1
