-- Make a dead job ready again, with no attempt counted. An expiry that has passed is
-- removed: the operator wants the job to run. The error of the last attempt is forgotten
-- with the attempts. A piece becomes a plain job (B8).
--
-- ?1 job  ?2 turn  ?3 now (ms)
UPDATE jobs
SET state = 'ready', turn = ?2, ready_at = ?3, attempt = 0, since = NULL, reason = NULL,
    last_error = NULL, batch = NULL,
    expires_at = iif(expires_at <= ?3, NULL, expires_at)
WHERE job = ?1
