-- Whether a batch needs maintenance: pieces to drop, a completion, or its removal.
--
-- ?1 queue  ?2 now (ms)
-- Returns 1 or 0.
SELECT EXISTS (SELECT 1 FROM batches
               WHERE queue = ?1 AND state IN ('cancelling', 'cancelled')
                 AND ready + scheduled > 0)
    OR EXISTS (SELECT 1 FROM batches
               WHERE queue = ?1 AND state IN ('sealed', 'cancelling')
                 AND ready + scheduled + leased = 0)
    OR EXISTS (SELECT 1 FROM batches
               WHERE queue = ?1 AND remove_at <= ?2
                 AND ready + scheduled + leased = 0)
