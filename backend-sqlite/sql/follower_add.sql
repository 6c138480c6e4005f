-- Hold a new job until its leader is done. The job is scheduled, and is never due.
--
-- ?1 queue  ?2 id of the leader  ?3 job  ?4 delay (ms)  ?5 bytes
INSERT INTO followers (queue, leader, job, delay_ms, bytes) VALUES (?1, ?2, ?3, ?4, ?5)
