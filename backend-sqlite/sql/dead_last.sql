-- Find the dead job that was buried last.
--
-- ?1 queue
-- Returns since (ms) and job, or no row.
SELECT since, job FROM jobs WHERE queue = ?1 AND state = 'dead'
ORDER BY since DESC, job DESC LIMIT 1
