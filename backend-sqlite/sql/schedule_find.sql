-- Find a schedule.
--
-- ?1 queue  ?2 name
-- Returns its definition and its last tick (ms).
SELECT definition, last_tick FROM schedules WHERE queue = ?1 AND name = ?2
