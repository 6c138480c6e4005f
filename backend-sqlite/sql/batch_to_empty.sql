-- Find a cancelled batch that has pieces waiting.
--
-- ?1 queue
-- Returns batch, or no row.
SELECT batch FROM batches
WHERE queue = ?1 AND state IN ('cancelling', 'cancelled') AND ready + scheduled > 0
ORDER BY batch LIMIT 1
