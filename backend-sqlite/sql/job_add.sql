-- Store a job, without its body.
--
-- ?1 queue  ?2 id  ?3 keeps_id: 1 or 0  ?4 priority
-- ?5 turn: of a ready job its turn, of a scheduled one its place
-- ?6 due (ms), or null for a ready job  ?7 max attempts
-- ?8 lease of its own (ms) or null  ?9 expiry (ms) or null  ?10 unique key or null
-- ?11 batch or null  ?12 now (ms)  ?13 for how long its result is kept (ms) or null
INSERT INTO jobs (queue, id, keeps_id, priority, state, turn, place, at,
                  max_attempts, lease_ms, expires_at, unique_key, batch, enqueued_at,
                  keep_ms)
VALUES (?1, ?2, ?3, ?4, iif(?6 IS NULL, 'ready', 'scheduled'),
        iif(?6 IS NULL, ?5, NULL), iif(?6 IS NULL, NULL, ?5), ?6,
        ?7, ?8, ?9, ?10, ?11, ?12, ?13)
