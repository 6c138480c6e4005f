-- Forget workers that have not reported for long enough.
--
-- ?1 now (ms)  ?2 how many at most
DELETE FROM relq_workers
WHERE (queue, worker) IN (SELECT queue, worker FROM relq_workers WHERE until <= ?1 LIMIT ?2)
