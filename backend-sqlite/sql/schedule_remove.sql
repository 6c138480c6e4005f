-- Remove a schedule.
--
-- ?1 queue  ?2 name
DELETE FROM schedules WHERE queue = ?1 AND name = ?2
