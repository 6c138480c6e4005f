-- Forget ids of ended jobs that need not be remembered any longer.
--
-- ?1 now (ms)  ?2 how many at most
DELETE FROM ended_ids
WHERE (queue, id) IN (SELECT queue, id FROM ended_ids WHERE until <= ?1 LIMIT ?2)
