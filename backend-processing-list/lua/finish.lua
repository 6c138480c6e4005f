#!lua flags=allow-oom
-- End jobs of one processing list: removing the element decides.
--
-- KEYS[1...] the shelf's, then the pattern's, then
-- KEYS[last] list  LIST  the processing list
-- ARGV[1] the total to add to
-- ARGV[2] 'tied' if there may be something to clean up behind them, else 'plain'
-- ARGV[3] how long ids are remembered after their job (ms)
-- ARGV[4...] leases: elements of the list
--
-- Returns the positions, from 0, of the leases that were lost.
local keys = bind_keys()
local list = KEYS[#KEYS]
local total, is_tied, window_ms = ARGV[1], ARGV[2] == 'tied', tonumber(ARGV[3])
local FIRST = 4
local now_ms = server_ms()

-- Keys of another type fail here, before the first write.
redis.call('HLEN', keys.totals)
redis.call('ZCARD', keys.leased)
local lost, names = {}, {}
for i = FIRST, #ARGV do
  local name, entry = read_element(list, ARGV[i])
  if name and redis.call('LREM', list, -1, ARGV[i]) == 1 then
    names[#names + 1] = name
    if is_tied then close_books(keys, read_entry(entry), now_ms, window_ms) end
  else
    lost[#lost + 1] = i - FIRST
  end
end
if #names == 0 then return lost end
redis.call('ZREM', keys.leased, unpack(names))
redis.call('HINCRBY', keys.totals, total, #names)
return lost
