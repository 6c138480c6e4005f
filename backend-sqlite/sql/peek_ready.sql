-- Read one page of ready jobs, in the order in which they are served.
--
-- ?1 queue  ?2 ?3 sort keys of the last job seen  ?4 how many at most
-- ?5 whether bodies are wanted: 1 or 0
-- Returns the two sort keys and the columns of a job view.
--
-- Jobs without a batch come first, most urgent first, and then pieces, in the order of
-- their batches (B4). The rank of a job is its negative priority, which is at most zero,
-- and the rank of a piece is that of its batch: see schema version 10. Jobs and pieces are
-- each read by two queries: first the rest of the cursor's rank, then the later ranks. A
-- single comparison of the pair (rank, turn) would use only the first column of the index,
-- and would read every earlier page again.
--
-- The page is not sorted: each query has an index in its order, CROSS JOIN keeps the order
-- of the keys, and a sort would read all payloads before the caller can end the page (R21).
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
  SELECT * FROM (SELECT job, ?2 AS rank, turn FROM jobs
                 WHERE batch = ?2 % (1 << 40) AND queue = ?1 AND state = 'ready'
                   AND turn > ?3
                 ORDER BY turn LIMIT ?4)
  UNION ALL
  SELECT * FROM (SELECT jobs.job, ((99 - batches.priority) << 40) + batches.batch AS rank,
                        jobs.turn
                 FROM batches CROSS JOIN jobs ON jobs.batch = batches.batch
                 WHERE batches.queue = ?1 AND ready > 0 AND rank > ?2
                   AND jobs.state = 'ready'
                 ORDER BY rank, batches.batch, jobs.turn LIMIT ?4)
  LIMIT ?4)
SELECT page.rank, page.turn,
       id, iif(?5, payload, NULL), iif(?5, headers, NULL), attempt, max_attempts,
       priority, unique_key, expires_at, last_error, at, since, worker, reason, enqueued_at,
       (SELECT id FROM batches WHERE batches.batch = jobs.batch),
       NULL, NULL, lease_ms, keep_ms
FROM page CROSS JOIN jobs ON jobs.job = page.job
          LEFT JOIN bodies ON bodies.job = page.job
