-- Read one page of the followers to cancel.
--
-- ?1 queue  ?2 how many at most
-- Returns job, bytes, id of the leader, and of the held job its id, keeps_id (1 or 0)
-- and keep_ms (or null). The id is null if no held job has this key.
SELECT followers.job, bytes, leader, id, keeps_id, keep_ms
FROM followers LEFT JOIN jobs
  ON jobs.job = followers.job AND jobs.queue = ?1
     AND state = 'scheduled' AND at = 9223372036854775807
WHERE followers.queue = ?1 AND orphaned = 1
ORDER BY followers.job LIMIT ?2
