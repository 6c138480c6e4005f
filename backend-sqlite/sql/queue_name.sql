-- Read the name of a queue.
--
-- ?1 queue
-- Returns the name.
SELECT name FROM queues WHERE queue = ?1
