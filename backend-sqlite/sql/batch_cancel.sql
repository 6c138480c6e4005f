-- Cancel a batch that has not completed: from now on no piece of it is claimed.
--
-- ?1 queue  ?2 id
UPDATE batches SET state = 'cancelling'
WHERE queue = ?1 AND id = ?2 AND state IN ('open', 'sealed')
