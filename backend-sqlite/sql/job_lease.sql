-- Lease a ready job; the delivery counts as an attempt from here on.
--
-- ?1 job  ?2 token  ?3 worker  ?4 now (ms)  ?5 lease end (ms)
UPDATE jobs
SET state = 'leased', token = ?2, worker = ?3, since = ?4, at = ?5,
    attempt = attempt + 1
WHERE job = ?1 AND state = 'ready'
