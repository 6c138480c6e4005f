#!lua flags=allow-oom
-- Make the jobs of a page of expired leases ready. Bury those on their last attempt,
-- and those whose entry was deleted. Drop pieces of cancelled batches.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] how many leases at most; fewer are recovered when the entries are large
--
-- Returns {how many were made ready, how many were buried, 1 if expired leases are left
-- else 0, ms until the next lease expires or -1}.
--
-- Library: entry, side_records, pattern, batch/records, moves, followers
local keys = bind_keys()
local page = tonumber(ARGV[1])
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
local counts, step, handled = {requeued = 0, buried = 0}, new_step(page), 0
local overdue =
  redis.call('ZRANGE', keys.leased, '-inf', now_ms, 'BYSCORE', 'LIMIT', 0, page + 1)
for i = 1, math.min(#overdue, page) do check_lease(keys, overdue[i]) end
while handled < #overdue and has_room(step) do
  handled = handled + 1
  local lease = overdue[handled]
  local entry = find_leased(keys, lease)
  count_job(step, entry)
  local batch, outcome = keys.found and keys.found.batch, entry == false and 'buried'
  if entry and batch and state_of(keys, batch) == 'cancelling' then
    keys.outcome, outcome = 'cancelled', nil
  elseif entry then
    outcome = recover_job(keys, read_entry(entry), entry, now_ms)
  end
  if entry then drop_leased(keys, lease) end
  settle_dropped(keys, step)
  if outcome then counts[outcome] = counts[outcome] + 1 end
end
return {
  counts.requeued, counts.buried, #overdue > handled and 1 or 0,
  next_in_ms(keys.leased, now_ms),
}
