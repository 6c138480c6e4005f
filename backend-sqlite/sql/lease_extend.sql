-- Let a lease run longer.
--
-- ?1 job  ?2 token  ?3 queue  ?4 lease end (ms)
UPDATE jobs SET at = ?4 WHERE job = ?1 AND token = ?2 AND queue = ?3
