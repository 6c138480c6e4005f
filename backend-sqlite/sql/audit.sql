-- What does not fit together in the tables (R23). One state a job, one holder a key
-- and what each state needs are constraints, which the check of the file covers.
--
-- ?1 queue
-- Returns a sentence each.
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
LIMIT 1000
