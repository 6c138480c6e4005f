-- Count added pieces, in the transaction that adds them (B2).
--
-- ?1 batch  ?2 how many
UPDATE batches SET total = total + ?2, ready = ready + ?2 WHERE batch = ?1
