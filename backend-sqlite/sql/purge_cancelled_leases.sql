-- Forget all cancelled leases of a queue.
--
-- ?1 queue
DELETE FROM cancelled_leases WHERE queue = ?1
