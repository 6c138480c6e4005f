-- Find out whether a held follower is to be cancelled.
--
-- ?1 job
-- Returns 1 or 0, or no row if the job follows none.
SELECT orphaned FROM followers WHERE job = ?1
