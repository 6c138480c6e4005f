#!lua flags=no-writes
-- Count the jobs in each state, all at one instant.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs; then
-- KEYS[last] handed  LIST  elements that a notifier has moved here from the ready list
--
-- Returns {ready, leased, overdue, age of the oldest ready job (ms) or -1, then the
-- bookkeeping's stats}.
--
-- Library: entry, pattern, moves
local keys = bind_keys()
local handed = KEYS[#KEYS]
local now_ms = server_ms()

-- Only the job that will be served first is read of each priority. If these jobs are
-- large, the most urgent priorities are left out, because their jobs wait the least.
local oldest_ms, step = due_age(keys, now_ms), new_step(12)
local function look(entry)
  oldest_ms = math.max(oldest_ms, ready_age(entry, now_ms))
  count_job(step, entry)
end

for _, list in ipairs({handed, keys.ready}) do look(redis.call('LRANGE', list, -1, -1)[1]) end
if redis.call('EXISTS', keys.ranked) == 1 then
  for priority = 0, 9 do
    local id = has_room(step) and first_ranked(keys.ranked, priority)[1]
    if id then look(redis.call('HGET', keys.jobs, id)) end
  end
end

return {
  redis.call('LLEN', keys.ready) + redis.call('LLEN', handed)
    + redis.call('ZCARD', keys.ranked),
  redis.call('ZCARD', keys.leased),
  redis.call('ZCOUNT', keys.leased, '-inf', now_ms),
  oldest_ms,
  bookkeeping_stats(keys, now_ms),
}
