-- Schema version 6: results of jobs (R29), created in one transaction.
--
-- For how long what became of the job is kept after its end; null if it is not kept. The
-- statement that ends such a job is followed by one that records how it ended.
ALTER TABLE jobs ADD COLUMN keep_ms INTEGER CHECK (keep_ms > 0);
ALTER TABLE completions ADD COLUMN keep_ms INTEGER;

-- A row for each job that keeps its result, from its push on. That a job is dead, and why,
-- is read from the job itself, so a burial and a recovery need not write here.
CREATE TABLE results (
  queue    INTEGER NOT NULL,
  id       TEXT    NOT NULL,
  -- Null until the job has ended.
  ended_as TEXT CHECK (ended_as IN ('done', 'discarded', 'cancelled', 'purged')),
  -- Until when the row is kept after that.
  until    INTEGER,
  -- Before the end: the last report of progress. Of a job that is done: its result.
  value    BLOB,
  PRIMARY KEY (queue, id),
  CHECK ((ended_as IS NULL) = (until IS NULL)),
  CHECK (ended_as IS NULL OR (ended_as = 'done') = (value IS NOT NULL))
) STRICT;
CREATE INDEX results_until ON results (until) WHERE until IS NOT NULL;
