-- Find out how a job ended whose id is remembered.
--
-- ?1 queue  ?2 id  ?3 now (ms)
-- Returns whether it was done (1 or 0) and remembered until (ms); or no row.
SELECT done, until FROM ended_ids WHERE queue = ?1 AND id = ?2 AND until > ?3
