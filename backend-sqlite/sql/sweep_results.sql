-- Remove what became of jobs that need not be kept any longer.
--
-- ?1 now (ms)  ?2 how many at most
DELETE FROM results
WHERE rowid IN (SELECT rowid FROM results WHERE until <= ?1 LIMIT ?2)
