-- Count the scheduled jobs that are due, up to one page.
--
-- ?1 queue  ?2 now (ms)  ?3 how many at most
-- Returns the number.
SELECT count(*) FROM (
  SELECT 1 FROM jobs WHERE queue = ?1 AND state = 'scheduled' AND at <= ?2 LIMIT ?3)
