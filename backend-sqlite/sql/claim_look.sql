-- Read whether a claim would find a job, without taking the write lock.
--
-- ?1 queue
-- Returns paused (1 or 0), whether a job can be claimed (1 or 0), and when the next
-- scheduled one is due (ms, or null). A held follower is due at the largest integer.
--
-- The order of the batches lets SQLite use their index `batches_claimable`, so that no
-- batch without a ready piece or a free slot is read (B4).
SELECT paused,
       EXISTS (SELECT 1 FROM jobs
               WHERE queue = ?1 AND state = 'ready' AND batch IS NULL)
         OR (SELECT batch FROM batches
             WHERE queue = ?1 AND ready > 0 AND state IN ('open', 'sealed')
               AND (slots IS NULL OR leased < slots)
             ORDER BY -priority, batch LIMIT 1) IS NOT NULL,
       (SELECT min(at) FROM jobs WHERE queue = ?1 AND state = 'scheduled')
FROM queues WHERE queue = ?1
