-- Change the priority or the limit of a batch that has not completed.
--
-- ?1 queue  ?2 id  ?3 priority, or null to keep it
-- ?4 whether the limit changes: 1 or 0  ?5 slots, or null for no limit
UPDATE batches
SET priority = coalesce(?3, priority), slots = iif(?4, ?5, slots)
WHERE queue = ?1 AND id = ?2 AND completed_at IS NULL
