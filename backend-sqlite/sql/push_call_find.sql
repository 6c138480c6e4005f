-- Find the results of an earlier push call with this token.
--
-- ?1 queue  ?2 token  ?3 now (ms)
-- Returns the number of its jobs and its results, or no row.
SELECT jobs, answers FROM push_calls WHERE queue = ?1 AND token = ?2 AND until > ?3
