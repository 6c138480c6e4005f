-- Forget all followers of a queue.
--
-- ?1 queue
DELETE FROM followers WHERE queue = ?1
