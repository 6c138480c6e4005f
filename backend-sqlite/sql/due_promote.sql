-- Make the next scheduled jobs ready, in the order of their due times. Jobs that are due
-- at the same time keep the order in which they were scheduled.
--
-- ?1 queue  ?2 now (ms)  ?3 first turn to give out
-- ?4 how many: no more than `due_count` has just counted
UPDATE jobs SET state = 'ready', turn = ?3 + due.rank, ready_at = ?2, at = NULL, place = NULL
FROM (SELECT job, row_number() OVER (ORDER BY at, place) - 1 AS rank
      FROM (SELECT job, at, place FROM jobs
            WHERE queue = ?1 AND state = 'scheduled'
            ORDER BY at, place LIMIT ?4)) AS due
WHERE jobs.job = due.job
