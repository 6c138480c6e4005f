-- Forget all that a queue remembers here.
--
-- ?1 queue
DELETE FROM cancelled_leases WHERE queue = ?1
