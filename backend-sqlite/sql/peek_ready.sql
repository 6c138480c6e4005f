-- Read one page of ready jobs, next to be served first.
--
-- ?1 queue  ?2 ?3 sort keys of the last job seen  ?4 how many at most
-- Returns the two sort keys and what a view of the job shows.
--
-- Two parts, the rest of that priority and then the lower ones, because a comparison
-- of pairs would use the index for its first key alone and read every page again.
WITH page AS (
  SELECT * FROM (SELECT job, -priority AS rank, turn FROM jobs
                 WHERE queue = ?1 AND state = 'ready' AND -priority = ?2 AND turn > ?3
                 ORDER BY turn LIMIT ?4)
  UNION ALL
  SELECT * FROM (SELECT job, -priority AS rank, turn FROM jobs
                 WHERE queue = ?1 AND state = 'ready' AND -priority > ?2
                 ORDER BY -priority, turn LIMIT ?4)
  LIMIT ?4)
SELECT page.rank, page.turn,
       id, payload, headers, attempt, max_attempts, priority, unique_key, expires_at,
       last_error, at, since, worker, reason
FROM page CROSS JOIN jobs ON jobs.job = page.job
          LEFT JOIN bodies ON bodies.job = page.job
ORDER BY page.rank, page.turn
