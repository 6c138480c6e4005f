-- Schema version 8: reports of workers that run (R33), created in one transaction.
--
-- A report renews `until`. No lease depends on it. The name has a prefix, because the file
-- may have a table `workers` of the application.
CREATE TABLE relq_workers (
  queue  INTEGER NOT NULL,
  worker TEXT    NOT NULL,
  -- The first report of this run (ms).
  since  INTEGER NOT NULL,
  -- Until when the worker is listed, unless it reports again (ms).
  until  INTEGER NOT NULL,
  -- How many handlers it runs at once.
  slots  INTEGER NOT NULL CHECK (slots > 0),
  PRIMARY KEY (queue, worker)
) STRICT, WITHOUT ROWID;
CREATE INDEX relq_workers_until ON relq_workers (until);
