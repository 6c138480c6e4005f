-- Remove jobs; `body_remove` removes their bodies.
--
-- Of each job: ?1 job
DELETE FROM jobs WHERE job IN (/*each*/?1/*each*/)
