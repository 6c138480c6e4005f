-- Store jobs, without their bodies.
--
-- ?1 queue  ?2 now (ms)  ?3 batch or null
-- Of each job: ?4 job  ?5 id  ?6 keeps_id: 1 or 0  ?7 priority
-- ?8 turn: of a ready job its turn, of a scheduled one its place
-- ?9 due (ms), or null for a ready job  ?10 max attempts
-- ?11 lease of its own (ms) or null  ?12 expiry (ms) or null  ?13 unique key or null
-- ?14 for how long its result is kept (ms) or null
INSERT INTO jobs (queue, enqueued_at, batch, job, id, keeps_id, priority, state, turn,
                  place, at, max_attempts, lease_ms, expires_at, unique_key, keep_ms)
VALUES /*each*/(?1, ?2, ?3, ?4, ?5, ?6, ?7, iif(?9 IS NULL, 'ready', 'scheduled'),
        iif(?9 IS NULL, ?8, NULL), iif(?9 IS NULL, NULL, ?8), ?9,
        ?10, ?11, ?12, ?13, ?14)/*each*/
