-- Write the record of a batch's completion (B5).
--
-- ?1 batch  ?2 now (ms)
UPDATE batches
SET state = CASE WHEN state = 'cancelling' THEN 'cancelled'
                 WHEN failed > 0 THEN 'failed' ELSE 'done' END,
    completed_at = ?2, remove_at = ?2 + retention_ms
WHERE batch = ?1
