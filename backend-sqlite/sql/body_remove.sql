-- Remove the bodies of jobs.
--
-- Of each job: ?1 job
DELETE FROM bodies WHERE job IN (/*each*/?1/*each*/)
