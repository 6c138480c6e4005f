-- Remove one page of what became of the jobs of a queue. They have all ended.
--
-- ?1 queue  ?2 how many at most
DELETE FROM results
WHERE rowid IN (SELECT rowid FROM results WHERE queue = ?1 LIMIT ?2)
