#!lua flags=allow-oom
-- End a ready job.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- KEYS[last] STRING  the job's item key
-- ARGV[1] how long an id is remembered after its job has ended (ms)
--
-- Returns 1 if the job was there, else 0.
--
-- Library: entry, side_records, pattern, moves
local keys = bind_keys()
local item, window_ms = KEYS[#KEYS], tonumber(ARGV[1])
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
for _, key in ipairs({keys.unique, keys.errors}) do redis.call('HLEN', key) end
redis.call('ZCARD', keys.ids)
if not is_item(item) then return 0 end

local job = job_with_id(redis.call('GETRANGE', item, 0, LONGEST_HEAD), item:sub(#ITEM + 1))
redis.call('UNLINK', item)
if job then close_side_records(keys, job, now_ms, window_ms, 'cancelled') end
add_to_total(keys.totals, 'cancelled', 1)
return 1
