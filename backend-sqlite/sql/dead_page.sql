-- Read one page of dead jobs, oldest first.
--
-- ?1 queue  ?2 ?3 since (ms) and job of the last one seen
-- ?4 ?5 since (ms) and job of the last one wanted  ?6 how many at most
-- Returns since, job, id, keeps_id, keep_ms (or null) and unique key.
SELECT since, job, id, keeps_id, keep_ms, unique_key FROM jobs
WHERE queue = ?1 AND state = 'dead'
  AND (since, job) > (?2, ?3) AND (since, job) <= (?4, ?5)
ORDER BY since, job LIMIT ?6
