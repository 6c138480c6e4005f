-- Read one page of the workers that have reported, in the order of their names. Some may
-- have to be forgotten.
--
-- ?1 queue  ?2 name of the last one seen, or ''  ?3 how many at most
-- Returns worker, slots, first report (ms) and listed until (ms).
SELECT worker, slots, since, until FROM relq_workers
WHERE queue = ?1 AND worker > ?2 ORDER BY worker LIMIT ?3
