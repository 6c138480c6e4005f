-- Find the batch whose pieces the next claim takes (B3, B4).
--
-- ?1 queue
-- Returns batch, its id and how many of its slots are free (null for no limit); or no
-- row.
SELECT batch, id, slots - leased FROM batches
WHERE queue = ?1 AND ready > 0 AND state IN ('open', 'sealed')
  AND (slots IS NULL OR leased < slots)
ORDER BY -priority, batch LIMIT 1
