-- Forget all that a queue remembers here.
--
-- ?1 queue
DELETE FROM batches WHERE queue = ?1
