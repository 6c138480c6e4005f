-- Store the progress of a job that has not ended.
--
-- ?1 queue  ?2 id  ?3 progress, or null to remove it
UPDATE results SET value = ?3 WHERE queue = ?1 AND id = ?2
