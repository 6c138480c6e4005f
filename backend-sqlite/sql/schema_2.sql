-- Schema version 2: batches (B1 to B10), made in one transaction.
--
-- A piece is a job that names its batch. There is one way in, which counts what it
-- adds, so that a push of plain jobs pays for no trigger. From then on what a batch
-- counts of its pieces is kept by triggers, in the statement that moves the piece, so
-- that no way out of a state can forget it; the audit counts anew.
CREATE TABLE batches (
  -- In the order of their making. A key is never given out twice, so that a dead
  -- letter is not taken for a piece of a later batch.
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
  -- Since its completion: when it is removed.
  remove_at    INTEGER,
  -- Pieces that were added, ever; that were done; that were buried.
  total        INTEGER NOT NULL DEFAULT 0 CHECK (total >= 0),
  done         INTEGER NOT NULL DEFAULT 0 CHECK (done >= 0),
  failed       INTEGER NOT NULL DEFAULT 0 CHECK (failed >= 0),
  -- The live ones, by their states. What is missing from the total was dropped.
  ready        INTEGER NOT NULL DEFAULT 0 CHECK (ready >= 0),
  scheduled    INTEGER NOT NULL DEFAULT 0 CHECK (scheduled >= 0),
  leased       INTEGER NOT NULL DEFAULT 0 CHECK (leased >= 0)
) STRICT;

CREATE UNIQUE INDEX batches_by_id ON batches (queue, id);

-- What a claim, a cancel, a completion and a recovery look for, and no more.
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

-- The jobs that completions push, until they do.
CREATE TABLE completions (
  batch        INTEGER PRIMARY KEY,
  -- The name of the queue; null is the batch's own.
  queue_name   TEXT,
  payload      BLOB    NOT NULL,
  headers      BLOB,
  priority     INTEGER NOT NULL,
  delay_ms     INTEGER NOT NULL,
  expires_ms   INTEGER,
  max_attempts INTEGER NOT NULL,
  lease_ms     INTEGER
) STRICT;

-- Of a dead letter: the batch in which it died.
ALTER TABLE jobs ADD COLUMN batch INTEGER;

-- Pieces are served by their batches.
DROP INDEX jobs_ready;
CREATE INDEX jobs_ready ON jobs (queue, -priority, turn)
  WHERE state = 'ready' AND batch IS NULL;
CREATE INDEX pieces ON jobs (batch, state, turn) WHERE batch IS NOT NULL;

-- A dead letter that is redriven is of no batch any more, and so is not counted.
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
