-- Lease ready jobs; the delivery counts as an attempt from here on. On a failure, what
-- the statement has changed stays, and the caller rolls back the transaction: otherwise
-- SQLite would copy each page before it changes it.
--
-- ?1 worker  ?2 now (ms)
-- Of each job: ?3 job  ?4 token  ?5 lease end (ms)
UPDATE OR FAIL jobs
SET state = 'leased', token = lease.column2, worker = ?1, since = ?2, at = lease.column3,
    attempt = attempt + 1
FROM (VALUES /*each*/(?3, ?4, ?5)/*each*/) AS lease
WHERE jobs.job = lease.column1 AND state = 'ready'
