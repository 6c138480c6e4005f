#!lua flags=allow-oom
-- End jobs of one processing list. A job counts as ended if its element was removed.
--
-- KEYS[1] list    LIST  the processing list
-- KEYS[2] leased  ZSET  lease -> end (ms)
-- KEYS[3] totals  HASH  name -> count
-- KEYS[4] unique  HASH  unique key -> holder
-- KEYS[5] ids     ZSET  client-made id -> when it may be forgotten (ms)
-- KEYS[6] errors  HASH  id -> last error
-- ARGV[1] name of the total to increase
-- ARGV[2] how long an id is remembered after its job has ended (ms); 0 if the jobs
--         have no side records
-- ARGV[3...] leases: elements of the list
--
-- Returns the positions, from 0, of the leases that were lost.
--
-- Library: entry, side_records, pattern
local list, leased, totals = KEYS[1], KEYS[2], KEYS[3]
local side_records = {unique = KEYS[4], ids = KEYS[5], errors = KEYS[6]}
local total, window_ms = ARGV[1], tonumber(ARGV[2])
local FIRST = 3
local now_ms = window_ms > 0 and server_ms()

local names = {}
for i = FIRST, #ARGV do names[#names + 1] = name_of(list, ARGV[i]) end
-- If a key has another type, the script fails here: ZREM is the first write. It also
-- gets lost leases, which `leased` does not contain.
redis.call('LLEN', list)
if window_ms > 0 then check_side_records(side_records) end
if #names > 0 then redis.call('ZREM', leased, unpack(names)) end

local lost, ended = {}, 0
for i = FIRST, #ARGV do
  if name_of(list, ARGV[i]) and redis.call('LREM', list, '-1', ARGV[i]) == 1 then
    ended = ended + 1
    local _, entry_at = read_element(list, ARGV[i])
    local job = window_ms > 0 and read_entry(head_from(ARGV[i], entry_at))
    if job then close_side_records(side_records, job, now_ms, window_ms, total) end
  else
    lost[#lost + 1] = i - FIRST
  end
end
if ended > 0 then add_to_total(totals, total, ended) end
return lost
