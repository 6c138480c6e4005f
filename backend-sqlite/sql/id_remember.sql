-- Remember the client-made id of a job that ended.
--
-- ?1 queue  ?2 id  ?3 remembered until (ms)
INSERT OR REPLACE INTO ended_ids (queue, id, until) VALUES (?1, ?2, ?3)
