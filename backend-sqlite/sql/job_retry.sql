-- Schedule a failed or postponed job for a later attempt or, without a due time, make it
-- ready at once.
--
-- ?1 job  ?2 due (ms) or null  ?3 turn: of a ready job its turn, of a scheduled one its
-- place  ?4 error, or null to keep the one it has  ?5 how many deliveries to uncount
-- ?6 now (ms)
UPDATE jobs
SET state = iif(?2 IS NULL, 'ready', 'scheduled'), at = ?2,
    ready_at = iif(?2 IS NULL, ?6, ready_at),
    turn = iif(?2 IS NULL, ?3, NULL), place = iif(?2 IS NULL, NULL, ?3),
    last_error = coalesce(?4, last_error), attempt = attempt - ?5,
    token = NULL, worker = NULL, since = NULL
WHERE job = ?1
