#!lua
-- Store jobs that use an option, or the jobs of a call with a push token.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] push token, or empty
-- ARGV[2] how long tokens are remembered (ms)
-- ARGV[3...] the fields of each job: see pushing.lua
--
-- Returns the duplicates as `push_jobs` does; or the error RELQTOKEN if the token belongs
-- to another call, or RELQLEADER with the position of a job that cannot follow its leader,
-- and why. After an error nothing was written.
--
-- Library: entry, side_records, moves, pushing
local keys = bind_keys()
local token, window_ms = ARGV[1], tonumber(ARGV[2])
local FIRST = 3
local count = (#ARGV - FIRST + 1) / PUSH_FIELDS
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_push(keys)

if token ~= '' then
  local forget_at = redis.call('ZSCORE', keys.calls, token)
  if forget_at and tonumber(forget_at) > now_ms then
    local first = cmsgpack.unpack(redis.call('HGET', keys.answers, token))
    if first.count ~= count then
      return redis.error_reply('RELQTOKEN the token is that of a call with other jobs')
    end
    return first.duplicates
  end
end

local duplicates, chosen = push_jobs(keys, FIRST, now_ms)
if not duplicates then return chosen end

-- How many expired tokens and ids a push forgets for each one that it adds. Where no
-- reaper runs, only pushes remove them.
local FORGOTTEN = 4

if token ~= '' then
  redis.call('ZADD', keys.calls, now_ms + window_ms, token)
  redis.call('HSET', keys.answers, token,
    cmsgpack.pack({count = count, duplicates = duplicates}))
  forget_calls(keys, now_ms, FORGOTTEN)
end
if chosen > 0 then forget(keys.ids, now_ms, count + FORGOTTEN) end
return duplicates
