-- Schema version 1, created in one transaction.
--
-- A job is one row of `jobs`, and its state is one column, so it cannot be in two
-- places. The CHECK lists what each state needs. All times are milliseconds since
-- the Unix epoch.
CREATE TABLE queues (
  queue     INTEGER PRIMARY KEY,
  name      TEXT    NOT NULL UNIQUE,
  paused    INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
  -- The turn that the next job to become ready gets.
  next_turn INTEGER NOT NULL DEFAULT 1,
  finished  INTEGER NOT NULL DEFAULT 0,
  discarded INTEGER NOT NULL DEFAULT 0,
  cancelled INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE jobs (
  job          INTEGER PRIMARY KEY,
  queue        INTEGER NOT NULL,
  id           TEXT    NOT NULL,
  -- 1 when the client made the id, so that it is remembered after the job's end.
  keeps_id     INTEGER NOT NULL CHECK (keeps_id IN (0, 1)),
  state        TEXT    NOT NULL,
  priority     INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 9),
  -- Set when the job becomes ready and kept while it is leased: a recovered job is
  -- served before all jobs that became ready after it.
  turn         INTEGER,
  -- Scheduled: when it is due. Leased: when the lease ends.
  at           INTEGER,
  -- Leased or dead: since when the job has this state.
  since        INTEGER,
  worker       TEXT,
  token        BLOB,
  attempt      INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
  max_attempts INTEGER NOT NULL CHECK (max_attempts BETWEEN 1 AND 65535),
  lease_ms     INTEGER CHECK (lease_ms > 0),
  expires_at   INTEGER,
  unique_key   TEXT,
  last_error   TEXT,
  reason       TEXT,
  CHECK (CASE state
    WHEN 'scheduled' THEN turn IS NULL AND at IS NOT NULL AND token IS NULL
    WHEN 'ready'     THEN turn IS NOT NULL AND at IS NULL AND token IS NULL
    WHEN 'leased'    THEN turn IS NOT NULL AND at IS NOT NULL AND token IS NOT NULL
                      AND worker IS NOT NULL AND since IS NOT NULL AND attempt > 0
    WHEN 'dead'      THEN turn IS NULL AND at IS NULL AND token IS NULL
                      AND since IS NOT NULL AND reason IS NOT NULL
    ELSE 0 END)
) STRICT;

-- Columns that never change are in a table of their own, so that a lease or a heartbeat
-- does not rewrite a large payload.
CREATE TABLE bodies (
  job     INTEGER PRIMARY KEY,
  payload BLOB NOT NULL,
  headers BLOB
) STRICT;

CREATE UNIQUE INDEX jobs_by_id ON jobs (queue, id);

-- One small index for each state: its first entry is the next job to claim, promote or
-- recover, however many jobs there are.
CREATE INDEX jobs_ready ON jobs (queue, -priority, turn) WHERE state = 'ready';
CREATE INDEX jobs_scheduled ON jobs (queue, at, job) WHERE state = 'scheduled';
CREATE INDEX jobs_leased ON jobs (queue, at, job, worker) WHERE state = 'leased';
CREATE INDEX jobs_dead ON jobs (queue, since, job) WHERE state = 'dead';

-- A unique key is held by at most one job that is not dead (R16).
CREATE UNIQUE INDEX jobs_by_unique_key ON jobs (queue, unique_key)
  WHERE unique_key IS NOT NULL AND state <> 'dead';

-- Client-made ids of ended jobs (R4).
CREATE TABLE ended_ids (
  queue INTEGER NOT NULL,
  id    TEXT    NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (queue, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ended_ids_until ON ended_ids (until);

-- Push calls with a token, and their results (R4).
CREATE TABLE push_calls (
  queue   INTEGER NOT NULL,
  token   TEXT    NOT NULL,
  jobs    INTEGER NOT NULL,
  answers TEXT    NOT NULL,
  until   INTEGER NOT NULL,
  PRIMARY KEY (queue, token)
) STRICT, WITHOUT ROWID;
CREATE INDEX push_calls_until ON push_calls (until);

-- Leases whose job was cancelled. The worker's next heartbeat reads them.
CREATE TABLE cancelled_leases (
  token BLOB    NOT NULL PRIMARY KEY,
  queue INTEGER NOT NULL,
  until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX cancelled_leases_until ON cancelled_leases (until);
