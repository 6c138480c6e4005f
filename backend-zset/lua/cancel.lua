#!lua flags=allow-oom
-- End a job that is in no list, wherever it is.
--
-- KEYS[1] later      ZSET  id -> due (ms)
-- KEYS[2] ranked     ZSET  id -> rank, of ready jobs of other priorities
-- KEYS[3] leased     ZSET  lease -> end (ms)
-- KEYS[4] jobs       HASH  id -> entry
-- KEYS[5] cancelled  ZSET  lease of a cancelled job -> when it may be forgotten (ms)
-- KEYS[6] errors     HASH  id -> last error
-- KEYS[7] unique     HASH  unique key -> holder
-- KEYS[8] ids        ZSET  client-made id -> when it may be forgotten (ms)
-- KEYS[9] totals     HASH  name -> count
-- ARGV[1] id
-- ARGV[2] its lease, or empty when it is not known to be leased
-- ARGV[3] how long ids are remembered after their job (ms)
-- ARGV[4] how long a cancelled lease is remembered after its end (ms)
--
-- Returns 'scheduled', 'ready' or 'leased', as it was, or false when it was not there.
local later, ranked, leased, jobs, cancelled = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local errors, unique, ids, totals = KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local id, lease, window_ms, remember_ms =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local now_ms = server_ms()

local function leave_its_place()
  local lease_end = lease ~= '' and redis.call('ZSCORE', leased, lease)
  if lease_end then
    local forget_at = math.max(now_ms, tonumber(lease_end)) + remember_ms
    redis.call('ZADD', cancelled, forget_at, lease)
    redis.call('ZREM', leased, lease)
    return 'leased'
  end
  if redis.call('ZREM', later, id) == 1 then return 'scheduled' end
  if redis.call('ZREM', ranked, id) == 1 then return 'ready' end
  return false
end

redis.call('HLEN', totals)
local job = read_entry(redis.call('HGET', jobs, id) or '')
local place = leave_its_place()
if not place then return false end
if job then
  free_unique(unique, job)
  if job.is_indexed then redis.call('ZADD', ids, now_ms + window_ms, id) end
end
redis.call('HDEL', errors, id)
redis.call('HDEL', jobs, id)
redis.call('HINCRBY', totals, 'cancelled', 1)
return place
