#!lua flags=allow-oom
-- Make a page of due scheduled jobs ready.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] maximum number of jobs
--
-- Returns {how many jobs left the scheduled ones, 1 if there is more else 0, ms until
-- the next job is due or -1}. It handles fewer jobs when their entries are large.
--
-- Library: entry, side_records, moves, followers
local keys = bind_keys()
local page = tonumber(ARGV[1])
local now_ms = server_ms()

-- The whole part of a score is the time at which the job is due: see `score_behind`.
local due = redis.call('ZRANGE', keys.later, '-inf', '(' .. now_ms + 1, 'BYSCORE',
  'LIMIT', 0, page + 1)
local entries, jobs, step, count = {}, {}, new_step(page), 0

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
while count < #due and has_room(step) do
  count = count + 1
  entries[count] = redis.call('HGET', keys.jobs, due[count])
  jobs[count] = read_entry(entries[count] or '')
  check_job(keys, jobs[count])
  count_job(step, entries[count])
end

for i = 1, count do
  make_due_ready(keys, due[i], entries[i], jobs[i], now_ms)
  if jobs[i] then settle_dropped(keys, step) end
end
return {count, #due > count and 1 or 0, next_in_ms(keys.later, now_ms)}
