-- Read one page of the queues of the file, in the order of their names.
--
-- ?1 name of the last one seen, or ''  ?2 how many at most
-- Returns their names.
SELECT name FROM queues WHERE name > ?1 ORDER BY name LIMIT ?2
