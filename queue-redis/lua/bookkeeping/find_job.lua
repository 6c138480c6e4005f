#!lua flags=no-writes
-- Look for a job by its id, where the queue has an index of ids.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] id
--
-- Returns {where, score, followers, entry, error}. `where` is 'scheduled', 'dead' or
-- 'ready' if the job is stored there; 'ended' if its id is remembered; else 'unseen'. The
-- score is the due time, the time of death, or the time at which the id may be forgotten
-- (ms). `followers` is the list of its held followers; nil if it has none.
--
-- Library: entry, side_records, moves
local keys = bind_keys()
local id = ARGV[1]

local function find()
  local due = redis.call('ZSCORE', keys.later, id)
  if due then return 'scheduled', due end
  local since = redis.call('ZSCORE', keys.dead, id)
  if since then return 'dead', since end
  if find_kept_ready(keys, id) then return 'ready', '' end
  local forget_at = redis.call('ZSCORE', keys.ids, id)
  local is_past = not forget_at or forget_at == 'inf' or tonumber(forget_at) <= server_ms()
  if is_past then return 'unseen', '' end
  return 'ended', forget_at
end

local where, score = find()
local found = {where, score, redis.call('HGET', results_key(keys, 'followers'), id)}
if where ~= 'unseen' and where ~= 'ended' then
  found[4], found[5] = redis.call('HGET', keys.jobs, id), redis.call('HGET', keys.errors, id)
end
return found
