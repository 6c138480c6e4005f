-- Schema version 9: the triggers of version 2, with OR FAIL.
--
-- A statement that may undo its own changes copies each page before it changes it, and a
-- trigger with the usual ABORT makes it such a statement, also for jobs without a batch.
-- This was a quarter of the instructions of a drain. With FAIL what the statement has changed
-- stays, and relq rolls back the transaction.
DROP TRIGGER piece_moved;
DROP TRIGGER piece_removed;

CREATE TRIGGER piece_moved AFTER UPDATE OF state ON jobs
WHEN new.batch IS NOT NULL AND new.state <> old.state
BEGIN
  UPDATE OR FAIL batches
  SET ready = ready + (new.state = 'ready') - (old.state = 'ready'),
      scheduled = scheduled + (new.state = 'scheduled') - (old.state = 'scheduled'),
      leased = leased + (new.state = 'leased') - (old.state = 'leased'),
      failed = failed + (new.state = 'dead')
  WHERE batch = new.batch;
END;

CREATE TRIGGER piece_removed AFTER DELETE ON jobs WHEN old.batch IS NOT NULL
BEGIN
  UPDATE OR FAIL batches
  SET ready = ready - (old.state = 'ready'),
      scheduled = scheduled - (old.state = 'scheduled'),
      leased = leased - (old.state = 'leased')
  WHERE batch = old.batch;
END;
