#!lua flags=allow-oom
-- End jobs that are done or discarded.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] name of the total to increase
-- ARGV[2] 'mark' to drop the elements at a later rotation, 'remove' to remove them now
-- ARGV[3] how long an id is remembered after its job has ended (ms)
-- ARGV[4...] the elements; with 'mark', the entry may be cut off if the job has no
--            side records
--
-- Returns the positions, from 0, of the leases that were lost.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local total, how, window_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local FIRST = 4
local now_ms = server_ms()

-- Whether the job has a unique key, a client-made id, or an earlier failure.
local function has_side_records(entry)
  return #entry > 8 and (entry:byte(5) % 4 ~= 0 or entry:sub(7, 8) ~= '\0\1')
end

-- Removes an element. The search begins at the head, where a leased element was put.
local function remove(element)
  redis.call('LREM', keys.circle, 1, element)
  redis.call('ZREM', keys.marks, (read_in_process(element)))
end

local take_out = how == 'remove' and remove
  or function(element) drop_leased(keys, element) end

-- If a key has another type, the script fails here, before its first write.
check_ready(keys)
local function needs_side_records(element)
  local _, entry_at = read_in_process(element)
  return entry_at and has_side_records(head_from(element, entry_at))
end
for i = FIRST, #ARGV do
  if needs_side_records(ARGV[i]) then
    check_side_records(keys)
    break
  end
end
local lost, ended = {}, 0
for i = FIRST, #ARGV do
  local entry_at = find_running(keys, ARGV[i])
  if entry_at then
    local head = head_from(ARGV[i], entry_at)
    local job = has_side_records(head) and read_entry(head)
    if job then close_side_records(keys, job, now_ms, window_ms, total) end
    take_out(ARGV[i])
    ended = ended + 1
  else
    lost[#lost + 1] = i - FIRST
  end
end
if ended > 0 then add_to_total(keys.totals, total, ended) end
return lost
