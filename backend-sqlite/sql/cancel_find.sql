-- Find a job that can be cancelled, which is any job that is not dead.
--
-- ?1 queue  ?2 id
-- Returns job, id, keeps_id, keep_ms (or null), state, token, lease end (ms), batch (or
-- null) and whether it is a held follower (1 or 0); or no row.
SELECT job, id, keeps_id, keep_ms, state, token, at, batch,
       state = 'scheduled' AND at = 9223372036854775807
FROM jobs
WHERE queue = ?1 AND id = ?2 AND state <> 'dead'
