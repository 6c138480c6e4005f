-- Find a queue by its name.
--
-- ?1 name
-- Returns the queue's key, or no row.
SELECT queue FROM queues WHERE name = ?1
