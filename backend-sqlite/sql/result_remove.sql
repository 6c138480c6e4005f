-- Remove what is kept of a job, in the transaction that purges it.
--
-- ?1 queue  ?2 id
DELETE FROM results WHERE queue = ?1 AND id = ?2
