-- Bury a job.
--
-- ?1 job  ?2 now (ms)  ?3 reason  ?4 last error, or null to keep the one it has
-- Returns the job's id, or null if its result is not kept.
UPDATE jobs
SET state = 'dead', since = ?2, reason = ?3, last_error = coalesce(?4, last_error),
    turn = NULL, place = NULL, at = NULL, token = NULL, worker = NULL
WHERE job = ?1
RETURNING iif(keep_ms IS NULL, NULL, id)
