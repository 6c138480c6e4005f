-- Count the jobs in all states.
--
-- ?1 queue
SELECT count(*) FROM jobs WHERE queue = ?1
