-- Make a leased job ready again with its old turn. The attempt is not counted.
--
-- ?1 job
UPDATE jobs
SET state = 'ready', attempt = attempt - 1,
    at = NULL, token = NULL, worker = NULL, since = NULL
WHERE job = ?1
