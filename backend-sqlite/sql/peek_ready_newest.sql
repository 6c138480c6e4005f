-- Read one page of ready jobs, from the one that is served last to the first.
--
-- ?1 queue  ?2 ?3 sort keys of the last job seen  ?4 how many at most
-- ?5 whether bodies are wanted: 1 or 0
-- Returns the two sort keys and the columns of a job view.
--
-- The reverse of `peek_ready`: pieces come first, those of the batch that is served last
-- before the others, and then jobs without a batch, the least urgent first. Each kind is
-- read by two queries, which use the same indexes backwards.
WITH page AS (
  SELECT * FROM (SELECT job, ?2 AS rank, turn FROM jobs
                 WHERE batch = ?2 % (1 << 40) AND queue = ?1 AND state = 'ready'
                   AND turn < ?3
                 ORDER BY turn DESC LIMIT ?4)
  UNION ALL
  SELECT * FROM (SELECT jobs.job, ((99 - batches.priority) << 40) + batches.batch AS rank,
                        jobs.turn
                 FROM batches CROSS JOIN jobs ON jobs.batch = batches.batch
                 WHERE batches.queue = ?1 AND ready > 0 AND rank < ?2
                   AND jobs.state = 'ready'
                 ORDER BY rank DESC, batches.batch DESC, jobs.turn DESC LIMIT ?4)
  UNION ALL
  SELECT * FROM (SELECT job, -priority AS rank, turn FROM jobs
                 WHERE queue = ?1 AND state = 'ready' AND batch IS NULL
                   AND -priority = ?2 AND turn < ?3
                 ORDER BY turn DESC LIMIT ?4)
  UNION ALL
  SELECT * FROM (SELECT job, -priority AS rank, turn FROM jobs
                 WHERE queue = ?1 AND state = 'ready' AND batch IS NULL
                   AND -priority < ?2
                 ORDER BY -priority DESC, turn DESC LIMIT ?4)
  LIMIT ?4)
SELECT page.rank, page.turn,
       id, iif(?5, payload, NULL), iif(?5, headers, NULL), attempt, max_attempts,
       priority, unique_key, expires_at, last_error, at, since, worker, reason, enqueued_at,
       (SELECT id FROM batches WHERE batches.batch = jobs.batch),
       NULL, NULL, lease_ms, keep_ms
FROM page CROSS JOIN jobs ON jobs.job = page.job
          LEFT JOIN bodies ON bodies.job = page.job
