-- Read the headers of all jobs that have headers.
--
-- ?1 queue
-- Returns id and headers.
SELECT id, headers FROM jobs JOIN bodies USING (job)
WHERE queue = ?1 AND headers IS NOT NULL
