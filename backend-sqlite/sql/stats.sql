-- Count the jobs in each state (R23).
--
-- ?1 queue  ?2 now (ms)
-- Returns ready, scheduled, leased, overdue, dead, finished, discarded, cancelled,
-- paused, when the next scheduled job is due (ms, or null), and since when the oldest
-- waiting job has been waiting (ms, or null). A ready job waits since it became ready, and
-- a scheduled job since it was due. A held follower is scheduled, and has no due time.
--
-- Of each priority only the job with the first turn is read. Pieces of batches are left
-- out, because their batch may hold them back.
SELECT
  (SELECT count(*) FROM jobs WHERE queue = ?1 AND state = 'ready' AND batch IS NULL)
    + (SELECT coalesce(sum(ready), 0) FROM batches WHERE queue = ?1 AND ready > 0),
  (SELECT count(*) FROM jobs WHERE queue = ?1 AND state = 'scheduled'),
  (SELECT count(*) FROM jobs WHERE queue = ?1 AND state = 'leased'),
  (SELECT count(*) FROM jobs WHERE queue = ?1 AND state = 'leased' AND at <= ?2),
  (SELECT count(*) FROM jobs WHERE queue = ?1 AND state = 'dead'),
  finished, discarded, cancelled, paused,
  (SELECT min(at) FROM jobs
   WHERE queue = ?1 AND state = 'scheduled' AND at < 9223372036854775807),
  (SELECT min(since) FROM (
     SELECT (SELECT coalesce(ready_at, enqueued_at) FROM jobs
             WHERE queue = ?1 AND state = 'ready' AND batch IS NULL
               AND -priority = -level
             ORDER BY turn LIMIT 1) AS since
     FROM (SELECT 0 AS level UNION ALL VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9))
     UNION ALL
     SELECT min(at) FROM jobs WHERE queue = ?1 AND state = 'scheduled' AND at <= ?2))
FROM queues WHERE queue = ?1
