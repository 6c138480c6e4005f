-- Whether an id is taken: by a job, or by a recently ended job.
--
-- ?1 queue  ?2 id  ?3 now (ms)
-- Returns 1 or 0.
SELECT EXISTS (SELECT 1 FROM jobs WHERE queue = ?1 AND id = ?2)
    OR EXISTS (SELECT 1 FROM ended_ids WHERE queue = ?1 AND id = ?2 AND until > ?3)
