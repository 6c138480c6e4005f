-- Reset the counters to zero.
--
-- ?1 queue
UPDATE queues SET finished = 0, discarded = 0, cancelled = 0 WHERE queue = ?1
