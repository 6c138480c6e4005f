-- Whether a worker holds any lease, or has reported that it runs.
--
-- ?1 queue  ?2 worker
-- Returns 1 or 0.
SELECT EXISTS (SELECT 1 FROM jobs
               WHERE queue = ?1 AND state = 'leased' AND worker = ?2)
    OR EXISTS (SELECT 1 FROM relq_workers WHERE queue = ?1 AND worker = ?2)
