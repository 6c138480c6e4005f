-- Read and remove the job that a batch's completion pushes.
--
-- ?1 batch
-- Returns name of the queue (or null), payload, headers, priority, delay (ms),
-- expires in (ms or null), max attempts, lease of its own (ms or null), for how long
-- its result is kept (ms or null); or no row.
DELETE FROM completions WHERE batch = ?1
RETURNING queue_name, payload, headers, priority, delay_ms, expires_ms, max_attempts,
          lease_ms, keep_ms
