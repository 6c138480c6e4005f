-- Whether there are followers to cancel.
--
-- ?1 queue
-- Returns 1 or 0.
SELECT EXISTS (SELECT 1 FROM followers WHERE queue = ?1 AND orphaned = 1)
