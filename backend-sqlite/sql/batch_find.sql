-- Find a batch by its id.
--
-- ?1 queue  ?2 id
-- Returns batch and state, or no row.
SELECT batch, state FROM batches WHERE queue = ?1 AND id = ?2
