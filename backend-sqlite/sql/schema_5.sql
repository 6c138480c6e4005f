-- Schema version 5: schedules (R28), created in one transaction.
CREATE TABLE schedules (
  queue      INTEGER NOT NULL,
  name       TEXT    NOT NULL,
  definition BLOB    NOT NULL,
  -- The last tick whose job was pushed, or else when the schedule was stored or changed
  -- (ms).
  last_tick  INTEGER NOT NULL,
  PRIMARY KEY (queue, name)
) STRICT;
