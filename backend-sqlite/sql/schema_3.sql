-- Schema version 3: the order of scheduled jobs that are due at the same time.
--
-- A job gets a place each time it is scheduled. Places are turns of the queue, so they
-- increase. Jobs that were scheduled before this version come first, in their order.
ALTER TABLE jobs ADD COLUMN place INTEGER;
UPDATE jobs SET place = job - 0x4000000000000000 WHERE state = 'scheduled';

DROP INDEX jobs_scheduled;
CREATE INDEX jobs_scheduled ON jobs (queue, at, place) WHERE state = 'scheduled';
