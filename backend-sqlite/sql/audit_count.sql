-- Count the jobs in all states.
--
-- ?1 queue
-- Returns the number.
SELECT count(*) FROM jobs WHERE queue = ?1
