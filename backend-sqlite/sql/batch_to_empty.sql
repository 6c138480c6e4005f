-- Find the next cancelled batch that has waiting pieces.
--
-- ?1 queue  ?2 the last one seen, or 0
-- Returns batch, or no row.
SELECT batch FROM batches
WHERE queue = ?1 AND batch > ?2
  AND state IN ('cancelling', 'cancelled') AND ready + scheduled > 0
ORDER BY batch LIMIT 1
