#!lua flags=allow-oom
-- End a job that is in no list, wherever it is.
--
-- KEYS[1] later      ZSET  id -> due (ms)
-- KEYS[2] ranked     ZSET  id -> rank, of ready jobs of other priorities
-- KEYS[3] leased     ZSET  lease -> end (ms)
-- KEYS[4] jobs       HASH  id -> entry, of scheduled, ranked and dead jobs
-- KEYS[5] cancelled  ZSET  lease of a cancelled job -> when it may be forgotten (ms)
-- KEYS[6] errors     HASH  id -> last error
-- KEYS[7] unique     HASH  unique key -> holder
-- KEYS[8] ids        ZSET  client-made id -> when it may be forgotten (ms)
-- KEYS[9] totals     HASH  name -> count
-- KEYS[10] held      HASH  lease -> entry
-- ARGV[1] id
-- ARGV[2] its lease, or empty when it is not known to be leased
-- ARGV[3] how long ids are remembered after their job (ms)
-- ARGV[4] how long a cancelled lease is remembered after its end (ms)
--
-- Returns 'scheduled', 'ready' or 'leased', as it was, or false when it was not there.
local later, ranked, leased, jobs, cancelled = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local errors, unique, ids, totals, held = KEYS[6], KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local id, lease, window_ms, remember_ms =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local now_ms = server_ms()

-- Takes the job out of its place; answers its entry and what the place was.
local function take_out()
  if lease ~= '' then
    local lease_end = redis.call('ZSCORE', leased, lease)
    if not lease_end then return nil end
    local entry = redis.call('HGET', held, lease)
    local forget_at = math.max(now_ms, tonumber(lease_end)) + remember_ms
    redis.call('ZADD', cancelled, forget_at, lease)
    redis.call('HDEL', held, lease)
    redis.call('ZREM', leased, lease)
    return entry, 'leased'
  end
  local place = redis.call('ZREM', later, id) == 1 and 'scheduled'
    or redis.call('ZREM', ranked, id) == 1 and 'ready'
  if not place then return nil end
  local entry = redis.call('HGET', jobs, id)
  redis.call('HDEL', jobs, id)
  return entry, place
end

redis.call('HLEN', totals)
redis.call('HLEN', jobs)
local entry, place = take_out()
if not place then return false end
local job = read_entry(entry or '')
if job then
  free_unique(unique, job)
  if job.is_indexed then redis.call('ZADD', ids, now_ms + window_ms, id) end
end
redis.call('HDEL', errors, id)
redis.call('HINCRBY', totals, 'cancelled', 1)
return place
