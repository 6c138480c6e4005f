-- Whether the job of this lease was cancelled.
--
-- ?1 token  ?2 queue
-- Returns 1 or 0.
SELECT EXISTS (SELECT 1 FROM cancelled_leases
               WHERE token = ?1 AND queue = ?2)
