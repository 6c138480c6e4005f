-- Add a queue, unless another process has just added it.
--
-- ?1 name
INSERT INTO queues (name) VALUES (?1) ON CONFLICT (name) DO NOTHING
