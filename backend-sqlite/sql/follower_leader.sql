-- Read what a push must know of the job that another one is to follow.
--
-- ?1 queue  ?2 id of the leader  ?3 now (ms)
-- Returns of a stored job with this id whether the id is remembered (1 or 0), of an
-- ended one whether it was done (1 or 0), each null if there is none; and how many held
-- followers it has, and their bytes.
SELECT (SELECT keeps_id FROM jobs WHERE queue = ?1 AND id = ?2),
       (SELECT done FROM ended_ids WHERE queue = ?1 AND id = ?2 AND until > ?3),
       count(*), coalesce(sum(bytes), 0)
FROM followers WHERE queue = ?1 AND leader = ?2 AND orphaned = 0
