-- Count ended jobs, in the transaction that ends them (R23).
--
-- ?1 queue  ?2 finished  ?3 discarded  ?4 cancelled: how many to add
UPDATE queues
SET finished = finished + ?2, discarded = discarded + ?3, cancelled = cancelled + ?4
WHERE queue = ?1
