-- Schema version 2: batches (B1 to B10), created in one transaction.
--
-- A piece is a job that names its batch. Only one call adds pieces, and it counts them
-- itself, so that a push of plain jobs runs no trigger. After that, triggers update a
-- batch's counts in the statement that changes a piece's state, so that no statement
-- can forget to count. The audit counts the pieces again.
CREATE TABLE batches (
  -- Ascending in the order of creation. A key is never used again, so that a dead
  -- letter does not count as a piece of a later batch.
  batch        INTEGER PRIMARY KEY AUTOINCREMENT,
  queue        INTEGER NOT NULL,
  id           TEXT    NOT NULL,
  state        TEXT    NOT NULL DEFAULT 'open' CHECK (
    state IN ('open', 'sealed', 'cancelling', 'done', 'failed', 'cancelled')),
  priority     INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 99),
  -- How many pieces may be leased at once; null is no limit.
  slots        INTEGER CHECK (slots > 0),
  metadata     BLOB    NOT NULL,
  retention_ms INTEGER NOT NULL CHECK (retention_ms > 0),
  created_at   INTEGER NOT NULL,
  sealed_at    INTEGER,
  completed_at INTEGER,
  -- After the completion: when the batch is removed.
  remove_at    INTEGER,
  -- Counts of pieces: ever added, done, buried.
  total        INTEGER NOT NULL DEFAULT 0 CHECK (total >= 0),
  done         INTEGER NOT NULL DEFAULT 0 CHECK (done >= 0),
  failed       INTEGER NOT NULL DEFAULT 0 CHECK (failed >= 0),
  -- Counts of live pieces by state. Pieces missing from the total were dropped.
  ready        INTEGER NOT NULL DEFAULT 0 CHECK (ready >= 0),
  scheduled    INTEGER NOT NULL DEFAULT 0 CHECK (scheduled >= 0),
  leased       INTEGER NOT NULL DEFAULT 0 CHECK (leased >= 0)
) STRICT;

CREATE UNIQUE INDEX batches_by_id ON batches (queue, id);

-- One index for each search: the batches with pieces to claim, with ready pieces, with
-- pieces to drop, to complete, and to remove.
CREATE INDEX batches_claimable ON batches (queue, -priority, batch)
  WHERE ready > 0 AND state IN ('open', 'sealed')
    AND (slots IS NULL OR leased < slots);
CREATE INDEX batches_ready ON batches (queue, batch) WHERE ready > 0;
CREATE INDEX batches_to_empty ON batches (queue, batch)
  WHERE state IN ('cancelling', 'cancelled') AND ready + scheduled > 0;
CREATE INDEX batches_to_complete ON batches (queue, batch)
  WHERE state IN ('sealed', 'cancelling') AND ready + scheduled + leased = 0;
CREATE INDEX batches_to_remove ON batches (queue, remove_at)
  WHERE remove_at IS NOT NULL AND ready + scheduled + leased = 0;

-- The jobs that completions push, stored until then.
CREATE TABLE completions (
  batch        INTEGER PRIMARY KEY,
  -- The name of the queue to push to; null for the batch's own queue.
  queue_name   TEXT,
  payload      BLOB    NOT NULL,
  headers      BLOB,
  priority     INTEGER NOT NULL,
  delay_ms     INTEGER NOT NULL,
  expires_ms   INTEGER,
  max_attempts INTEGER NOT NULL,
  lease_ms     INTEGER
) STRICT;

-- For a dead letter, this is the batch in which it died.
ALTER TABLE jobs ADD COLUMN batch INTEGER;

-- Pieces are served by batch, so this index no longer covers them.
DROP INDEX jobs_ready;
CREATE INDEX jobs_ready ON jobs (queue, -priority, turn)
  WHERE state = 'ready' AND batch IS NULL;
CREATE INDEX pieces ON jobs (batch, state, turn) WHERE batch IS NOT NULL;

-- A redriven dead letter no longer belongs to a batch, so it is not counted.
CREATE TRIGGER piece_moved AFTER UPDATE OF state ON jobs
WHEN new.batch IS NOT NULL AND new.state <> old.state
BEGIN
  UPDATE batches
  SET ready = ready + (new.state = 'ready') - (old.state = 'ready'),
      scheduled = scheduled + (new.state = 'scheduled') - (old.state = 'scheduled'),
      leased = leased + (new.state = 'leased') - (old.state = 'leased'),
      failed = failed + (new.state = 'dead')
  WHERE batch = new.batch;
END;

CREATE TRIGGER piece_removed AFTER DELETE ON jobs WHEN old.batch IS NOT NULL
BEGIN
  UPDATE batches
  SET ready = ready - (old.state = 'ready'),
      scheduled = scheduled - (old.state = 'scheduled'),
      leased = leased - (old.state = 'leased')
  WHERE batch = old.batch;
END;
