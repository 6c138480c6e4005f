#!lua flags=no-writes
-- Check whether there is anything to claim, and draw ready jobs at random.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] how many jobs at most
-- ARGV[2] how many draws at most
-- ARGV[3] how many keys are known not to be ready jobs
--
-- Returns {now (us), 1 if paused else 0, ms until the next delayed job is due or -1,
-- how many keys are unclaimed, item key, ...}.
--
-- Library: pattern, moves
local keys = bind_keys()
local wanted, draws, foreign_keys = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])

local time = redis.call('TIME')
local now_us = string.format('%.0f', time[1] * 1000000 + time[2])
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)

local is_paused = redis.call('EXISTS', keys.paused)
local count = unclaimed(keys)
local answer = {now_us, is_paused, next_in_ms(keys.later, now_ms), count}
if is_paused == 1 then return answer end

local is_seen = {}
local enough = #answer + math.min(wanted, count - foreign_keys)
for _ = 1, draws do
  if #answer >= enough then break end
  local name = redis.call('RANDOMKEY')
  if name and not is_seen[name] and is_item(name) then answer[#answer + 1] = name end
  if name then is_seen[name] = true end
end
return answer
