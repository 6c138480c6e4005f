-- Find sealed batches whose pieces have all ended.
--
-- ?1 queue  ?2 how many at most
-- Returns batch, id, created at (ms).
SELECT batch, id, created_at FROM batches
WHERE queue = ?1 AND state IN ('sealed', 'cancelling')
  AND ready + scheduled + leased = 0
LIMIT ?2
