-- Create an open batch, unless one with that id exists.
--
-- ?1 queue  ?2 id  ?3 priority  ?4 slots or null  ?5 metadata  ?6 retention (ms)
-- ?7 now (ms)
-- Returns its key, or no row if the id exists.
INSERT INTO batches (queue, id, priority, slots, metadata, retention_ms, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (queue, id) DO NOTHING
RETURNING batch
