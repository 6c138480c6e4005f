-- Forget the workers of a queue. Those that run report again.
--
-- ?1 queue
DELETE FROM workers WHERE queue = ?1
