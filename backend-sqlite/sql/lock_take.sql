-- Take the write lock of the file, and change nothing.
UPDATE queues SET paused = paused WHERE queue IS NULL
