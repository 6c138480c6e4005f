-- List the held followers of a job, in the order of their pushes.
--
-- ?1 queue  ?2 id of the leader
-- Returns their ids.
SELECT id FROM followers JOIN jobs USING (job)
WHERE followers.queue = ?1 AND leader = ?2 AND orphaned = 0
ORDER BY followers.job
