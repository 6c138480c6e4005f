-- Forget the report of a worker.
--
-- ?1 queue  ?2 worker
DELETE FROM relq_workers WHERE queue = ?1 AND worker = ?2
