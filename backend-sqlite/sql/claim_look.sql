-- Read whether a claim would find a job, without taking the write lock.
--
-- ?1 queue
-- Returns paused (1 or 0), whether a job can be claimed (1 or 0), and when the next
-- scheduled one is due (ms, or null).
SELECT paused,
       EXISTS (SELECT 1 FROM jobs
               WHERE queue = ?1 AND state = 'ready' AND batch IS NULL)
         OR EXISTS (SELECT 1 FROM batches
                    WHERE queue = ?1 AND ready > 0 AND state IN ('open', 'sealed')
                      AND (slots IS NULL OR leased < slots)),
       (SELECT min(at) FROM jobs
        WHERE queue = ?1 AND state = 'scheduled' AND at < 9223372036854775807)
FROM queues WHERE queue = ?1
