-- Extend a lease, unless its job is a piece of a cancelled batch (B7).
--
-- ?1 job  ?2 token  ?3 queue  ?4 lease end (ms)
UPDATE jobs SET at = ?4 WHERE job = ?1 AND token = ?2 AND queue = ?3
  AND (batch IS NULL
       OR (SELECT state FROM batches WHERE batches.batch = jobs.batch)
          IN ('open', 'sealed'))
