-- Take back a job that was not worked on: its old turn, and the attempt uncounted.
--
-- ?1 job
UPDATE jobs
SET state = 'ready', attempt = attempt - 1,
    at = NULL, token = NULL, worker = NULL, since = NULL
WHERE job = ?1
