-- Record how a job has ended, in the transaction that removes it.
--
-- ?1 queue  ?2 id  ?3 how it ended  ?4 result, or null  ?5 kept until (ms)
-- ?6 id of the leader with which it was cancelled, or null
UPDATE results SET ended_as = ?3, value = ?4, until = ?5, leader = ?6
WHERE queue = ?1 AND id = ?2
