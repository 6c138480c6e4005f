#!lua flags=allow-oom
-- End jobs without side records: each had no unique key and no id that a client chose,
-- and had not failed before.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] name of the total to increase
-- ARGV[2...] leases
--
-- Returns the positions, from 0, of the leases that were lost.
--
-- Library: pattern, moves
local keys = bind_keys()
local total = ARGV[1]

-- XACK is not fenced, so check the lease first: only the current holder may continue.
local held = redis.call('ZMSCORE', keys.leased, unpack(ARGV, 2))
local lost, ended, leases, taken = {}, {}, {}, {}
for i, end_ms in ipairs(held) do
  local lease = ARGV[i + 1]
  local stream, sid = place_of(keys, lease)
  if end_ms and stream and not taken[lease] then
    local sids = ended[stream] or {}
    sids[#sids + 1], ended[stream] = sid, sids
    leases[#leases + 1], taken[lease] = lease, true
  else
    lost[#lost + 1] = i - 1
  end
end
if #leases == 0 then return lost end

-- If a key has another type, the script fails here, before its first write.
for stream in pairs(ended) do redis.call('XLEN', stream) end
for stream, sids in pairs(ended) do
  redis.call('XACK', stream, GROUP, unpack(sids))
  redis.call('XDEL', stream, unpack(sids))
end
redis.call('ZREM', keys.leased, unpack(leases))
-- If another client has overwritten the totals with another type, this count fails and
-- is ignored: see `add_to_total`.
redis.pcall('HINCRBY', keys.totals, total, #leases)
return lost
