-- Count a piece as done, in the transaction that removes it (B2).
--
-- ?1 batch
UPDATE batches SET done = done + 1 WHERE batch = ?1
