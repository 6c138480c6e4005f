#!lua flags=allow-oom
-- Cancel a batch, and drop a page of its waiting pieces. After the first call, no piece
-- of the batch is claimed any more.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] id
-- ARGV[2] how many pieces to drop at most; fewer are dropped when they are large
--
-- Returns {1 if more pieces must be dropped else 0, the new status of the batch}, or
-- false if there is no such batch.
--
-- Library: entry, side_records, pattern, batch/records, batch/sweep, moves
local keys = bind_keys()
local id, page = ARGV[1], tonumber(ARGV[2])

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
check_batch(keys, id)
check_leaders(keys)
local state, has_more = state_of(keys, id), false
if not state then return false end
if state == 'open' or state == 'sealed' then
  redis.call('HSET', batch_key(keys, 'record', id), 'state', 'cancelling')
  redis.call('ZREM', batch_key(keys, 'claimable'), id)
  state = 'cancelling'
end
if state == 'cancelling' then has_more = cancel_page(keys, id, new_step(page)) end
return {has_more and 1 or 0, status_of(keys, id)}
