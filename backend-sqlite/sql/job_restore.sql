-- Store a job as it was in a queue, without its body.
--
-- ?1 queue  ?2 id  ?3 priority  ?4 'ready', 'scheduled' or 'dead'
-- ?5 turn: of a ready job its turn, of a scheduled one its place
-- ?6 due (ms), or null if it is not scheduled
-- ?7 since when it is dead (ms), or null  ?8 why it is dead, or null
-- ?9 deliveries so far  ?10 max attempts  ?11 last error or null
-- ?12 lease of its own (ms) or null  ?13 expiry (ms) or null  ?14 unique key or null
-- ?15 when it was pushed (ms) or null  ?16 now (ms)
-- ?17 for how long its result is kept (ms) or null
INSERT INTO jobs (queue, id, keeps_id, priority, state, turn, place, at, since, reason,
                  attempt, max_attempts, last_error, lease_ms, expires_at, unique_key,
                  enqueued_at, ready_at, keep_ms)
VALUES (?1, ?2, 1, ?3, ?4, iif(?4 = 'ready', ?5, NULL), iif(?4 = 'scheduled', ?5, NULL),
        ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, iif(?4 = 'ready', ?16, NULL), ?17)
