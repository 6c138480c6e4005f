-- Find inconsistencies between the tables (R23). Other rules are constraints, which the
-- check of the file covers: one state for each job, one holder for each unique key, and
-- the columns that each state needs.
--
-- ?1 queue
-- Returns a sentence for each problem.
SELECT 'job ' || id || ' has no payload'
FROM jobs LEFT JOIN bodies USING (job)
WHERE queue = ?1 AND payload IS NULL
UNION ALL
SELECT 'a payload is kept for no job, under key ' || job
FROM bodies WHERE job NOT IN (SELECT job FROM jobs)
UNION ALL
SELECT 'job ' || id || ' is of no queue, under key ' || queue
FROM jobs WHERE queue NOT IN (SELECT queue FROM queues)
UNION ALL
SELECT 'job ' || id || ' has had ' || attempt || ' of ' || max_attempts || ' attempts'
FROM jobs WHERE queue = ?1 AND attempt > max_attempts
UNION ALL
SELECT 'job ' || id || ' is ready with no attempt left'
FROM jobs WHERE queue = ?1 AND state = 'ready' AND attempt >= max_attempts
UNION ALL
SELECT 'job ' || id || ' has a turn that was not given out yet'
FROM jobs JOIN queues USING (queue) WHERE queue = ?1 AND turn >= next_turn
UNION ALL
SELECT count(*) || ' jobs share turn ' || turn
FROM jobs WHERE queue = ?1 AND turn IS NOT NULL
GROUP BY turn HAVING count(*) > 1
UNION ALL
SELECT count(*) || ' jobs share a lease'
FROM jobs WHERE queue = ?1 AND token IS NOT NULL
GROUP BY token HAVING count(*) > 1
UNION ALL
SELECT 'job ' || id || ' is leased although its lease was cancelled'
FROM jobs JOIN cancelled_leases USING (token) WHERE jobs.queue = ?1
UNION ALL
SELECT 'piece ' || id || ' is of no batch, under key ' || batch
FROM jobs WHERE queue = ?1 AND state <> 'dead' AND batch IS NOT NULL
  AND NOT EXISTS (
    SELECT 1 FROM batches
    WHERE batches.batch = jobs.batch AND batches.queue = ?1)
UNION ALL
SELECT 'batch ' || id || ' counts other pieces than it has'
FROM batches
WHERE queue = ?1 AND (ready, scheduled, leased) IS NOT (
  SELECT count(*) FILTER (WHERE state = 'ready'),
         count(*) FILTER (WHERE state = 'scheduled'),
         count(*) FILTER (WHERE state = 'leased')
  FROM jobs WHERE jobs.batch = batches.batch)
UNION ALL
SELECT 'batch ' || id || ' has ended more pieces than it was given'
FROM batches
WHERE queue = ?1 AND done + failed + ready + scheduled + leased > total
UNION ALL
SELECT 'batch ' || id || ' has completed with pieces left'
FROM batches
WHERE queue = ?1 AND state IN ('done', 'failed') AND ready + scheduled + leased > 0
UNION ALL
SELECT 'batch ' || id || ' has ended in part'
FROM batches
WHERE queue = ?1
  AND (state IN ('done', 'failed', 'cancelled')) <> (completed_at IS NOT NULL)
UNION ALL
SELECT 'job ' || id || ' keeps its result, and has no row for it'
FROM jobs
WHERE queue = ?1 AND keep_ms IS NOT NULL
  AND NOT EXISTS (
    SELECT 1 FROM results
    WHERE results.queue = ?1 AND results.id = jobs.id AND ended_as IS NULL)
UNION ALL
SELECT 'a result is kept for no job, under the id ' || id
FROM results
WHERE queue = ?1 AND ended_as IS NULL
  AND NOT EXISTS (
    SELECT 1 FROM jobs
    WHERE jobs.queue = ?1 AND jobs.id = results.id AND keep_ms IS NOT NULL)
UNION ALL
SELECT 'job ' || jobs.id || ' follows ' || leader || ', which has ended'
FROM followers JOIN jobs USING (job)
WHERE followers.queue = ?1 AND orphaned = 0
  AND NOT EXISTS (
    SELECT 1 FROM jobs AS leaders
    WHERE leaders.queue = ?1 AND leaders.id = leader AND leaders.keeps_id = 1)
UNION ALL
SELECT 'job ' || id || ' is held, and follows no job'
FROM jobs
WHERE queue = ?1 AND state = 'scheduled' AND at = 9223372036854775807
  AND NOT EXISTS (
    SELECT 1 FROM followers WHERE followers.job = jobs.job AND followers.queue = ?1)
UNION ALL
SELECT 'a follower of ' || leader || ' is kept for no held job, under key ' || job
FROM followers
WHERE queue = ?1
  AND NOT EXISTS (
    SELECT 1 FROM jobs
    WHERE jobs.job = followers.job AND jobs.queue = ?1
      AND state = 'scheduled' AND at = 9223372036854775807)
UNION ALL
SELECT 'a completion is kept for no running batch, under key ' || batch
FROM completions
WHERE NOT EXISTS (
  SELECT 1 FROM batches
  WHERE batches.batch = completions.batch AND completed_at IS NULL)
LIMIT 1000
