-- Remove what became of jobs that need not be kept any longer. A call removes about as many
-- bytes as a step moves.
--
-- ?1 now (ms)  ?2 how many at most  ?3 how many bytes
DELETE FROM results
WHERE rowid IN (
  SELECT rowid FROM (
    SELECT rowid, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) - bytes AS bytes_before
    FROM (SELECT rowid, coalesce(length(value), 0) AS bytes FROM results
          WHERE until <= ?1 LIMIT ?2))
  WHERE bytes_before < ?3)
