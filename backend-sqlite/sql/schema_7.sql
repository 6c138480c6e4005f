-- Schema version 7: followers (R30), created in one transaction.
--
-- A follower that waits for its leader is a scheduled job that is never due: its `at` is
-- the largest integer. So `jobs` needs no column, and a plain job has no byte more.
CREATE TABLE followers (
  queue    INTEGER NOT NULL,
  -- The id of the job that must be done first.
  leader   TEXT    NOT NULL,
  -- The key of the follower. Keys ascend, so this is the order of the pushes.
  job      INTEGER NOT NULL,
  -- The delay that begins when the leader is done.
  delay_ms INTEGER NOT NULL CHECK (delay_ms >= 0),
  -- How many bytes the payload and the headers take.
  bytes    INTEGER NOT NULL CHECK (bytes >= 0),
  -- 1 when the leader has ended otherwise, so that the follower is to be cancelled.
  orphaned INTEGER NOT NULL DEFAULT 0 CHECK (orphaned IN (0, 1)),
  PRIMARY KEY (queue, leader, job)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX followers_by_job ON followers (job);
CREATE INDEX followers_orphaned ON followers (queue, job) WHERE orphaned = 1;

-- Whether the job was done. Ids that were remembered before this version count as done.
ALTER TABLE ended_ids ADD COLUMN done INTEGER NOT NULL DEFAULT 1 CHECK (done IN (0, 1));

-- Of a job that was cancelled because of it: the job that it followed.
ALTER TABLE results ADD COLUMN leader TEXT;
