-- Read one page of ready jobs, in the order in which they are served.
--
-- ?1 queue  ?2 ?3 sort keys of the last job seen  ?4 how many at most
-- Returns the two sort keys and what a view of the job shows.
--
-- Jobs of no batch come first, then pieces, the oldest batch first: their rank is the
-- key of the batch, and the rank of other jobs is at most zero. Each of the two is read
-- in two parts, the rest of the cursor's rank and then the later ranks: a comparison of
-- pairs would use the index for its first key only, and read every earlier page again.
WITH page AS (
  SELECT * FROM (SELECT job, -priority AS rank, turn FROM jobs
                 WHERE queue = ?1 AND state = 'ready' AND batch IS NULL
                   AND -priority = ?2 AND turn > ?3
                 ORDER BY turn LIMIT ?4)
  UNION ALL
  SELECT * FROM (SELECT job, -priority AS rank, turn FROM jobs
                 WHERE queue = ?1 AND state = 'ready' AND batch IS NULL
                   AND -priority > ?2
                 ORDER BY -priority, turn LIMIT ?4)
  UNION ALL
  SELECT * FROM (SELECT job, batch AS rank, turn FROM jobs
                 WHERE batch = ?2 AND queue = ?1 AND state = 'ready' AND turn > ?3
                 ORDER BY turn LIMIT ?4)
  UNION ALL
  SELECT * FROM (SELECT jobs.job, batches.batch AS rank, jobs.turn
                 FROM batches CROSS JOIN jobs ON jobs.batch = batches.batch
                 WHERE batches.queue = ?1 AND ready > 0 AND batches.batch > ?2
                   AND jobs.state = 'ready'
                 ORDER BY batches.batch, jobs.turn LIMIT ?4)
  LIMIT ?4)
SELECT page.rank, page.turn,
       id, payload, headers, attempt, max_attempts, priority, unique_key, expires_at,
       last_error, at, since, worker, reason,
       (SELECT id FROM batches WHERE batches.batch = jobs.batch)
FROM page CROSS JOIN jobs ON jobs.job = page.job
          LEFT JOIN bodies ON bodies.job = page.job
ORDER BY page.rank, page.turn
