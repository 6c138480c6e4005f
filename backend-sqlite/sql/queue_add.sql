-- Add a queue, unless another process just did.
--
-- ?1 name
INSERT INTO queues (name) VALUES (?1) ON CONFLICT (name) DO NOTHING
