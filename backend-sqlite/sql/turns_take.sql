-- Take the next turns of a queue.
--
-- ?1 queue  ?2 how many
-- Returns the first of them.
UPDATE queues SET next_turn = next_turn + ?2 WHERE queue = ?1
RETURNING next_turn - ?2
