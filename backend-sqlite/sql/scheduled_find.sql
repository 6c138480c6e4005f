-- Find a scheduled job by its id.
--
-- ?1 queue  ?2 id
-- Returns job, batch (or null), whether it is a held follower (1 or 0) and the id of the
-- job that it follows (or null); or no row.
SELECT job, batch, at = 9223372036854775807,
       (SELECT leader FROM followers WHERE followers.job = jobs.job)
FROM jobs
WHERE queue = ?1 AND id = ?2 AND state = 'scheduled'
