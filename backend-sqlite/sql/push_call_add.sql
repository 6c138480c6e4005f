-- Remember the results of a push call.
--
-- ?1 queue  ?2 token  ?3 number of jobs  ?4 results  ?5 remembered until (ms)
INSERT OR REPLACE INTO push_calls (queue, token, jobs, answers, until)
VALUES (?1, ?2, ?3, ?4, ?5)
