-- Count the held followers of a job.
--
-- ?1 queue  ?2 id of the leader
-- Returns the number.
SELECT count(*) FROM followers WHERE queue = ?1 AND leader = ?2 AND orphaned = 0
