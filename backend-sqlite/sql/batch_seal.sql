-- Seal an open batch: it gets no more pieces.
--
-- ?1 queue  ?2 id  ?3 now (ms)
UPDATE batches SET state = 'sealed', sealed_at = ?3
WHERE queue = ?1 AND id = ?2 AND state = 'open'
