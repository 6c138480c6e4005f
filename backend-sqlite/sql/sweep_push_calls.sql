-- Forget push calls that need not be remembered any longer.
--
-- ?1 now (ms)  ?2 how many at most
DELETE FROM push_calls
WHERE (queue, token) IN (SELECT queue, token FROM push_calls WHERE until <= ?1 LIMIT ?2)
