#!lua flags=allow-oom
-- Extend leases from now on. Pieces of a cancelled batch end here and are reported to
-- the caller (B7), or at the next call if the entries are large.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] lease (ms)
-- ARGV[2] how long a cancelled lease is remembered (ms)
-- ARGV[3...] leases
--
-- Returns {new end (ms), {positions, from 0, of the lost leases}, {positions of the
-- cancelled leases}}.
--
-- Library: entry, side_records, pattern, batch/records, moves, followers
local keys = bind_keys()
local FIRST = 3
local now_ms = server_ms()
local end_ms, forget_at = now_ms + tonumber(ARGV[1]), now_ms + tonumber(ARGV[2])

local function is_stopped(lease)
  local _, _, _, batch = place_of(keys, lease)
  return batch and state_of(keys, batch) == 'cancelling'
end

-- If a key has another type, the script fails here, before its first write.
redis.call('ZCARD', keys.cancelled)
local function has_pieces()
  for i = FIRST, #ARGV do
    if ARGV[i]:find('/b:', 1, true) then return true end
  end
  return false
end
if has_pieces() then
  check_keys(keys)
  for i = FIRST, #ARGV do check_lease(keys, ARGV[i]) end
end
local ends = redis.call('ZMSCORE', keys.leased, unpack(ARGV, FIRST))
local held, lost, stopped, step = {}, {}, {}, new_step(#ends)
for i, lease_end in ipairs(ends) do
  local lease = ARGV[i + FIRST - 1]
  local entry = lease_end and has_room(step) and is_stopped(lease) and find_leased(keys, lease)
  if entry then
    count_job(step, entry)
    keys.outcome = 'cancelled'
    drop_leased(keys, lease)
    settle_dropped(keys, step)
    redis.call('ZADD', keys.cancelled, forget_at, lease)
    stopped[#stopped + 1] = i - 1
  elseif lease_end then
    held[#held + 1] = end_ms
    held[#held + 1] = lease
  elseif redis.call('ZSCORE', keys.cancelled, lease) then
    stopped[#stopped + 1] = i - 1
  else
    lost[#lost + 1] = i - 1
  end
end
if #held > 0 then redis.call('ZADD', keys.leased, 'XX', unpack(held)) end
return {math.floor(end_ms), lost, stopped}
