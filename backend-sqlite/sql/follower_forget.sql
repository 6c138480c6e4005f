-- Forget the followers of a job, in the transaction that releases them.
--
-- ?1 queue  ?2 id of the leader
DELETE FROM followers WHERE queue = ?1 AND leader = ?2 AND orphaned = 0
