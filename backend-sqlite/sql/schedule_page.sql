-- Read one page of the schedules of a queue, in the order of their names.
--
-- ?1 queue  ?2 name of the last one seen, or ''  ?3 how many at most
-- Returns name, definition, last tick (ms).
SELECT name, definition, last_tick FROM schedules
WHERE queue = ?1 AND name > ?2 ORDER BY name LIMIT ?3
