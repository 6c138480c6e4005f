-- Forget all that a queue remembers here.
--
-- ?1 queue
DELETE FROM push_calls WHERE queue = ?1
