-- Look whether a job is stored and is not dead, so that a call goes on waiting for its end.
--
-- ?1 queue  ?2 id
-- Returns a row or none.
SELECT 1 FROM jobs WHERE queue = ?1 AND id = ?2 AND state <> 'dead'
