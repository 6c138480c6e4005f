-- Store a schedule, or replace one of the same name.
--
-- ?1 queue  ?2 name  ?3 definition  ?4 last tick (ms)
INSERT OR REPLACE INTO schedules (queue, name, definition, last_tick)
VALUES (?1, ?2, ?3, ?4)
