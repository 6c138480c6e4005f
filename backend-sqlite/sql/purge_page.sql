-- Remove one page of jobs in any state. `body_remove` removes their bodies.
--
-- Held followers come first, so that no purge that stops between two pages leaves a
-- follower without its leader.
--
-- ?1 queue  ?2 how many at most
-- Returns job, id, keep_ms (or null) and whether it is a held follower (1 or 0) of each
-- removed job.
DELETE FROM jobs
WHERE job IN (
  SELECT job FROM jobs
  WHERE queue = ?1 AND state = 'scheduled' AND at = 9223372036854775807
  UNION ALL
  SELECT job FROM jobs
  WHERE queue = ?1 AND NOT (state = 'scheduled' AND at = 9223372036854775807)
  LIMIT ?2)
RETURNING job, id, keep_ms,
          state = 'scheduled' AND at = 9223372036854775807
