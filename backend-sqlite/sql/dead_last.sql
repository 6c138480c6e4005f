-- Find the dead job that was buried last, up to a time.
--
-- ?1 queue  ?2 the time (ms)
-- Returns since (ms) and job, or no row.
SELECT since, job FROM jobs WHERE queue = ?1 AND state = 'dead' AND since <= ?2
ORDER BY since DESC, job DESC LIMIT 1
