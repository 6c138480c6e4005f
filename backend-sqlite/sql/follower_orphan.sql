-- Mark the followers of a job that has ended otherwise than done. They are cancelled
-- after that.
--
-- ?1 queue  ?2 id of the leader
UPDATE followers SET orphaned = 1 WHERE queue = ?1 AND leader = ?2
