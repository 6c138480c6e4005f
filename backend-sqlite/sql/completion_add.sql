-- Store the job that a batch's completion pushes.
--
-- ?1 batch  ?2 name of the queue, or null for the batch's own  ?3 payload
-- ?4 headers or null  ?5 priority  ?6 delay (ms)  ?7 expires in (ms) or null
-- ?8 max attempts  ?9 lease of its own (ms) or null
-- ?10 for how long its result is kept (ms) or null
INSERT INTO completions (batch, queue_name, payload, headers, priority, delay_ms,
                         expires_ms, max_attempts, lease_ms, keep_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
