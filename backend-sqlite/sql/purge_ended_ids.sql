-- Forget all ids of ended jobs of a queue.
--
-- ?1 queue
DELETE FROM ended_ids WHERE queue = ?1
