-- Begin to keep what becomes of a new job. Replaces what is kept of an earlier job with
-- that id.
--
-- ?1 queue  ?2 id
INSERT OR REPLACE INTO results (queue, id) VALUES (?1, ?2)
