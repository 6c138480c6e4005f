-- Read one page of the batches of a queue, in the order of their ids.
--
-- ?1 queue  ?2 id of the last one seen, or ''  ?3 how many at most
-- Returns the columns of a batch status.
SELECT id, state, priority, slots, metadata, total, done, failed, ready, scheduled, leased,
       created_at, sealed_at, completed_at
FROM batches WHERE queue = ?1 AND id > ?2 ORDER BY id LIMIT ?3
