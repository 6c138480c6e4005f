-- Remove all batches of a queue.
--
-- ?1 queue
DELETE FROM batches WHERE queue = ?1
