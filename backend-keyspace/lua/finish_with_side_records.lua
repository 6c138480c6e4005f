#!lua flags=allow-oom
-- End jobs that have a unique key or an id that a client chose, or that failed before.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- KEYS[n...] STRING  the processing keys, which are the leases
-- ARGV[1] name of the total to increase
-- ARGV[2] how long an id is remembered after its job has ended (ms)
--
-- Returns the positions, from 0, of the leases that were lost.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local total, window_ms = ARGV[1], tonumber(ARGV[2])
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
for _, key in ipairs({keys.unique, keys.errors}) do redis.call('HLEN', key) end
redis.call('ZCARD', keys.ids)

local function finish(processing)
  local head = redis.pcall('GETRANGE', processing, 0, LONGEST_HEAD)
  local job = type(head) == 'string' and read_entry(head)
  if job then close_side_records(keys, job, now_ms, window_ms, total) end
  redis.call('UNLINK', processing)
  add_to_total(keys.totals, total, 1)
end

local lost = {}
for i = first_job_key(), #KEYS do
  if redis.call('ZREM', keys.leased, KEYS[i]) == 1 then
    finish(KEYS[i])
  else
    lost[#lost + 1] = i - first_job_key()
  end
end
return lost
