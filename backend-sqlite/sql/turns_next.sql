-- Read the next turn of a queue.
--
-- ?1 queue
-- Returns the turn; or no row when the queue was removed from the file.
SELECT next_turn FROM queues WHERE queue = ?1
