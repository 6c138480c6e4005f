-- Store a job, without its body.
--
-- ?1 queue  ?2 id  ?3 keeps_id: 1 or 0  ?4 state  ?5 priority
-- ?6 turn, of a ready one  ?7 due (ms), of a scheduled one  ?8 max attempts
-- ?9 lease of its own (ms) or null  ?10 expiry (ms) or null  ?11 unique key or null
-- ?12 batch or null
INSERT INTO jobs (queue, id, keeps_id, state, priority, turn, at, max_attempts,
                  lease_ms, expires_at, unique_key, batch)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
