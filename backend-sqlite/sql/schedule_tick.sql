-- Record the last tick of a schedule.
--
-- ?1 queue  ?2 name  ?3 last tick (ms)
UPDATE schedules SET last_tick = ?3 WHERE queue = ?1 AND name = ?2
