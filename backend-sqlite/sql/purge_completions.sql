-- Remove the jobs that the completions of a queue's batches would push.
--
-- ?1 queue
DELETE FROM completions
WHERE batch IN (SELECT batch FROM batches WHERE queue = ?1)
