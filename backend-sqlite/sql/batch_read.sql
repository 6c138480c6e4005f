-- Read the status of a batch.
--
-- ?1 queue  ?2 id
-- Returns the columns of a batch status, or no row.
SELECT id, state, priority, slots, metadata, total, done, failed, ready, scheduled, leased,
       created_at, sealed_at, completed_at
FROM batches WHERE queue = ?1 AND id = ?2
