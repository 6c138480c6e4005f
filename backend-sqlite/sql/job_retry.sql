-- Schedule a failed job for a later attempt or, with a turn, make it ready at once.
--
-- ?1 job  ?2 state: scheduled or ready  ?3 due (ms) or null  ?4 turn or null
-- ?5 error
UPDATE jobs
SET state = ?2, at = ?3, turn = ?4, last_error = ?5,
    token = NULL, worker = NULL, since = NULL
WHERE job = ?1
