#!lua flags=allow-oom
-- Cancel a batch, and drop a page of its pieces that wait. From the first call on none
-- of them is claimed.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] id
-- ARGV[2] how many pieces at most
--
-- Returns {1 if there is more to be dropped else 0, what is known of it then}, or false
-- when there is none.
local keys = bind_keys()
local id, page = ARGV[1], tonumber(ARGV[2])

-- Keys of another type fail here, before the first write.
check_keys(keys)
check_batch(keys, id)
local state, has_more = state_of(keys, id), false
if not state then return false end
if state == 'open' or state == 'sealed' then
  redis.call('HSET', batch_key(keys, 'record', id), 'state', 'cancelling')
  redis.call('ZREM', batch_key(keys, 'claimable'), id)
  state = 'cancelling'
end
if state == 'cancelling' then has_more = cancel_page(keys, id, page) end
return {has_more and 1 or 0, status_of(keys, id)}
