-- Forget all that a queue remembers here.
--
-- ?1 queue
DELETE FROM ended_ids WHERE queue = ?1
