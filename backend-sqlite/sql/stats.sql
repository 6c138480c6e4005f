-- Count the jobs in each state (R23).
--
-- ?1 queue  ?2 now (ms)
-- Returns ready, scheduled, leased, overdue, dead, finished, discarded, cancelled,
-- paused, and when the next scheduled job is due (ms, or null).
SELECT
  (SELECT count(*) FROM jobs WHERE queue = ?1 AND state = 'ready' AND batch IS NULL)
    + (SELECT coalesce(sum(ready), 0) FROM batches WHERE queue = ?1 AND ready > 0),
  (SELECT count(*) FROM jobs WHERE queue = ?1 AND state = 'scheduled'),
  (SELECT count(*) FROM jobs WHERE queue = ?1 AND state = 'leased'),
  (SELECT count(*) FROM jobs WHERE queue = ?1 AND state = 'leased' AND at <= ?2),
  (SELECT count(*) FROM jobs WHERE queue = ?1 AND state = 'dead'),
  finished, discarded, cancelled, paused,
  (SELECT min(at) FROM jobs WHERE queue = ?1 AND state = 'scheduled')
FROM queues WHERE queue = ?1
