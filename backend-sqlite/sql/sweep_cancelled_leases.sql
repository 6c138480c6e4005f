-- Forget cancelled leases that need not be remembered any longer.
--
-- ?1 now (ms)  ?2 how many at most
DELETE FROM cancelled_leases
WHERE token IN (SELECT token FROM cancelled_leases WHERE until <= ?1 LIMIT ?2)
