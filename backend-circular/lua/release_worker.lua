#!lua flags=allow-oom
-- Release the leases of a worker that stops. The jobs keep their positions in the ring.
--
-- KEYS[1] marks  ZSET  token of a lease -> its end (ms), or the state of the lease
-- KEYS[2] wake   LIST  at most one token, for the notifiers
-- ARGV[1...] tokens
--
-- Returns {how many leases were released, how many of them recovery must process}.
--
-- Library: side_records, pattern
local marks = KEYS[1]
local keys = {wake = KEYS[2]}

redis.call('LLEN', keys.wake)
local left, unseen = 0, 0
for _, token in ipairs(ARGV) do
  local mark = tonumber(redis.call('ZSCORE', marks, token))
  if mark and mark > 0 then
    local is_unseen = token:sub(-1) == 'k'
    redis.call('ZADD', marks, is_unseen and LEFT_UNSEEN or LEFT, token)
    left = left + 1
    if is_unseen then unseen = unseen + 1 end
  end
end
if left > 0 then notify(keys) end
return {left, unseen}
