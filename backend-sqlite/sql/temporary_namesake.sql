-- Find a temporary table or view with the name of a table that a push uses.
SELECT name FROM temp.sqlite_schema
WHERE name COLLATE NOCASE IN ('queues', 'jobs', 'bodies', 'ended_ids', 'push_calls',
                              'cancelled_leases', 'batches', 'results', 'followers')
LIMIT 1
