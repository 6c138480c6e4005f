-- Make due scheduled jobs ready, in the order of their times.
--
-- ?1 queue  ?2 now (ms)  ?3 first turn to give out  ?4 how many at most
UPDATE jobs SET state = 'ready', turn = ?3 + due.place, at = NULL
FROM (SELECT job, row_number() OVER (ORDER BY at, job) - 1 AS place
      FROM (SELECT job, at FROM jobs
            WHERE queue = ?1 AND state = 'scheduled' AND at <= ?2
            ORDER BY at, job LIMIT ?4)) AS due
WHERE jobs.job = due.job
