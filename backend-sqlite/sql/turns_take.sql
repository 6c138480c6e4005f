-- Take the next turns of a queue. `turns_next` and this statement together take a third
-- of the instructions of one with RETURNING, for which SQLite makes a temporary table.
--
-- ?1 queue  ?2 how many
UPDATE queues SET next_turn = next_turn + ?2 WHERE queue = ?1
