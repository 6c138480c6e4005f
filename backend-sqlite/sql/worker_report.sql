-- Store the report of a worker. A worker that is still listed keeps the time of its first
-- report (R33), unless that one lists it for longer than this one: then the clock was set
-- back.
--
-- ?1 queue  ?2 worker  ?3 now (ms)  ?4 listed until (ms)  ?5 slots
INSERT INTO relq_workers (queue, worker, since, until, slots) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (queue, worker) DO UPDATE
SET since = iif(until > ?3 AND until <= ?4, since, ?3), until = ?4, slots = ?5
