-- Read what became of a job that keeps its result.
--
-- ?1 queue  ?2 id  ?3 now (ms)
-- Returns how it ended (or null), the progress or the result (or null), the leader with
-- which it was cancelled (or null), and of a job that has not ended its state (or null if
-- it is missing) and why it is dead (or null); or no row.
SELECT ended_as, value, leader, state, reason
FROM results LEFT JOIN jobs
  ON jobs.queue = results.queue AND jobs.id = results.id AND ended_as IS NULL
WHERE results.queue = ?1 AND results.id = ?2 AND (until IS NULL OR until > ?3)
