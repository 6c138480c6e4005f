-- Remember the id of a job that ended.
--
-- ?1 queue  ?2 id  ?3 remembered until (ms)  ?4 whether the job was done: 1 or 0
INSERT OR REPLACE INTO ended_ids (queue, id, until, done) VALUES (?1, ?2, ?3, ?4)
