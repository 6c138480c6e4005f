-- Store a job's body.
--
-- ?1 job  ?2 payload  ?3 headers or null
INSERT INTO bodies (job, payload, headers) VALUES (?1, ?2, ?3)
