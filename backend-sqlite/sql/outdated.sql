-- Whether there are expired ids, push calls, cancelled leases, results or reports of
-- workers to forget, or reports from before the clock was set back.
--
-- ?1 now (ms)  ?2 until when a report of now is listed (ms)
-- Returns 1 or 0.
SELECT EXISTS (SELECT 1 FROM ended_ids WHERE until <= ?1)
    OR EXISTS (SELECT 1 FROM push_calls WHERE until <= ?1)
    OR EXISTS (SELECT 1 FROM cancelled_leases WHERE until <= ?1)
    OR EXISTS (SELECT 1 FROM results WHERE until <= ?1)
    OR EXISTS (SELECT 1 FROM relq_workers WHERE until <= ?1 OR until > ?2)
