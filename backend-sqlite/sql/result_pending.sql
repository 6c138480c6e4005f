-- Look whether a job that keeps its result has not ended.
--
-- ?1 queue  ?2 id
-- Returns a row, or none if it has ended or nothing is kept of it.
SELECT 1
FROM results JOIN jobs ON jobs.queue = results.queue AND jobs.id = results.id
WHERE results.queue = ?1 AND results.id = ?2 AND ended_as IS NULL AND state <> 'dead'
