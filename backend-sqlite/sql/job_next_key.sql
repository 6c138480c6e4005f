-- Read a key for a new job: the one behind the highest.
--
-- Returns the key.
SELECT coalesce(max(job), 0) + 1 FROM jobs
