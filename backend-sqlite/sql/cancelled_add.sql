-- Remember that the job of this lease was cancelled.
--
-- ?1 token  ?2 queue  ?3 remembered until (ms)
INSERT OR REPLACE INTO cancelled_leases (token, queue, until) VALUES (?1, ?2, ?3)
