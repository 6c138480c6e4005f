-- Store the bodies of jobs.
--
-- Of each job: ?1 job  ?2 payload  ?3 headers or null
INSERT INTO bodies (job, payload, headers) VALUES /*each*/(?1, ?2, ?3)/*each*/
