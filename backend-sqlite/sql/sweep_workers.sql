-- Forget workers that have not reported for long enough, and reports from before the clock
-- was set back.
--
-- ?1 now (ms)  ?2 how many at most  ?3 until when a report of now is listed (ms)
DELETE FROM relq_workers
WHERE (queue, worker) IN
  (SELECT queue, worker FROM relq_workers WHERE until <= ?1 OR until > ?3 LIMIT ?2)
