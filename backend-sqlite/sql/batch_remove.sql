-- Remove batches whose retention has expired (B6).
--
-- ?1 queue  ?2 now (ms)  ?3 how many at most
DELETE FROM batches
WHERE batch IN (SELECT batch FROM batches
                WHERE queue = ?1 AND remove_at <= ?2
                  AND ready + scheduled + leased = 0
                LIMIT ?3)
