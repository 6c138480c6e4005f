-- Schema version 4: when a job was pushed, and since when it has been ready.
--
-- Both are null for a job that an earlier version pushed. `ready_at` is set when the job
-- gets a turn, and is kept with it. It is null for a job that was ready from its push on.
ALTER TABLE jobs ADD COLUMN enqueued_at INTEGER;
ALTER TABLE jobs ADD COLUMN ready_at INTEGER;
