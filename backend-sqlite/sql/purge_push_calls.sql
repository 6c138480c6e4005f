-- Forget all push calls of a queue.
--
-- ?1 queue
DELETE FROM push_calls WHERE queue = ?1
