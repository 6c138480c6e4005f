-- Forget the workers of a queue. Those that run report again.
--
-- ?1 queue
DELETE FROM relq_workers WHERE queue = ?1
