-- Close all batches of a queue for good, so that no piece is claimed and no batch
-- completes while their pieces are removed.
--
-- ?1 queue  ?2 now (ms)
UPDATE batches SET state = 'cancelled', completed_at = ?2, remove_at = ?2
WHERE queue = ?1 AND completed_at IS NULL
