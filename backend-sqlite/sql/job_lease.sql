-- Lease ready jobs; the delivery counts as an attempt from here on. With
-- OR FAIL the statement does not undo its changes when it fails, so SQLite need not copy
-- each page before it changes it. The caller rolls back the transaction instead.
--
-- ?1 worker  ?2 now (ms)
-- Of each job: ?3 job  ?4 token  ?5 lease end (ms)
UPDATE OR FAIL jobs
SET state = 'leased', token = lease.column2, worker = ?1, since = ?2, at = lease.column3,
    attempt = attempt + 1
FROM (VALUES /*each*/(?3, ?4, ?5)/*each*/) AS lease
WHERE jobs.job = lease.column1
