-- Give back one page of the jobs that a worker holds. They keep their turns, and the
-- attempts are not counted (R24).
--
-- ?1 queue  ?2 worker  ?3 how many at most
UPDATE jobs
SET state = 'ready', attempt = attempt - 1,
    at = NULL, token = NULL, worker = NULL, since = NULL
WHERE job IN (SELECT job FROM jobs
              WHERE queue = ?1 AND state = 'leased' AND worker = ?2
              LIMIT ?3)
