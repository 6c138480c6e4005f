-- Read when the next lease and the next delay end. A held follower has no due time.
--
-- ?1 queue
-- Returns two times (ms), each null if there is none.
SELECT (SELECT min(at) FROM jobs WHERE queue = ?1 AND state = 'leased'),
       (SELECT min(at) FROM jobs
        WHERE queue = ?1 AND state = 'scheduled' AND at < 9223372036854775807)
