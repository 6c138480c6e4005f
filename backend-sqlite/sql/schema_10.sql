-- Schema version 10: the batches with ready pieces in the order in which they are served.
--
-- The upper bits of a batch's rank are its priority, and the lower 40 bits its key, so the
-- ranks ascend in the order of B4. A page of ready jobs goes on behind one rank.
DROP INDEX batches_ready;
CREATE INDEX batches_ready ON batches (queue, ((99 - priority) << 40) + batch)
  WHERE ready > 0;
