-- Pause or resume claims.
--
-- ?1 queue  ?2 paused: 1 or 0
UPDATE queues SET paused = ?2 WHERE queue = ?1
