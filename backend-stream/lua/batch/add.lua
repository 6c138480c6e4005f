#!lua
-- Add pieces to an open batch, all or none.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] id of the batch
-- ARGV[2] push token, or empty
-- ARGV[3] how long tokens are remembered (ms)
-- ARGV[4...] for each piece: id, entry with six bytes at its end for the time of the push,
--            '1' if the client made the id else '0'
--
-- Returns {'stored', position from 0 and id of each piece that exists already, ...},
-- {'closed', state} or {'unknown'}; or the error RELQTOKEN if another call used the
-- token.
--
-- Library: entry, side_records, pattern, batch/records, moves
local keys = bind_keys()
local id, token, window_ms = ARGV[1], ARGV[2], tonumber(ARGV[3])
local FIRST, FIELDS = 4, 3
local count = (#ARGV - FIRST + 1) / FIELDS
local stream, live = batch_key(keys, 'pieces', id), batch_key(keys, 'live', id)
local record = batch_key(keys, 'record', id)
local now_ms = server_ms()

-- How many expired tokens and ids a call forgets at least: see push.lua.
local FORGOTTEN = 4

-- If a key has another type, the script fails here, before its first write.
redis.call('XLEN', stream)
redis.call('SCARD', live)
redis.call('LLEN', keys.wake)
redis.call('ZCARD', batch_key(keys, 'claimable'))
for _, key in ipairs({keys.ids, keys.calls}) do redis.call('ZCARD', key) end
redis.call('HLEN', keys.answers)
for i = FIRST, #ARGV, FIELDS do
  if keeps_result(ARGV[i + 1]) then
    check_results(keys)
    break
  end
end
local has_kept = redis.call('HLEN', keys.jobs) > 0

if token ~= '' then
  local forget_at = redis.call('ZSCORE', keys.calls, token)
  if forget_at and tonumber(forget_at) > now_ms then
    local first = cmsgpack.unpack(redis.call('HGET', keys.answers, token))
    if first.pieces ~= count or first.batch ~= id then
      return redis.error_reply('RELQTOKEN the token is that of another call')
    end
    return first.answer
  end
end
local state = redis.call('HGET', record, 'state')
if not state then return {'unknown'} end
if state ~= 'open' then return {'closed', state} end

local job_ids = {}
for i = 1, count do job_ids[i] = ARGV[FIRST + (i - 1) * FIELDS] end
local forget_at = count > 0 and redis.call('ZMSCORE', keys.ids, unpack(job_ids)) or {}

-- Whether the id of this piece is known from another job than a live piece of this batch.
local function is_known(i, is_indexed)
  if is_indexed and forget_at[i] and tonumber(forget_at[i]) > now_ms then return true end
  return has_kept and redis.call('HEXISTS', keys.jobs, job_ids[i]) == 1
end

local answer, indexed, results, added = {'stored'}, {}, {}, 0
for i = 1, count do
  local at, job_id = FIRST + (i - 1) * FIELDS, job_ids[i]
  local entry, is_indexed = ARGV[at + 1], ARGV[at + 2] == '1'
  if is_known(i, is_indexed) or redis.call('SADD', live, job_id) == 0 then
    answer[#answer + 1] = i - 1
    answer[#answer + 1] = job_id
  else
    if is_indexed then
      indexed[#indexed + 1] = '+inf'
      indexed[#indexed + 1] = job_id
    end
    if keeps_result(entry) then
      results[#results + 1] = job_id
      results[#results + 1] = UNFINISHED
    end
    add(stream, with_push_time(entry, now_ms))
    added = added + 1
  end
end
if #indexed > 0 then redis.call('ZADD', keys.ids, unpack(indexed)) end
begin_results(keys, results)
redis.pcall('HINCRBY', record, 'total', added)
refresh(keys, id)

if token ~= '' then
  redis.call('ZADD', keys.calls, now_ms + window_ms, token)
  redis.call('HSET', keys.answers, token,
    -- The record of a push holds the count of its jobs, never -1. So a push with the
    -- same token sees that another call used the token.
    cmsgpack.pack({count = -1, pieces = count, batch = id, answer = answer}))
  forget_calls(keys, now_ms, FORGOTTEN)
end
if #indexed > 0 then forget(keys.ids, now_ms, count + FORGOTTEN) end
return answer
