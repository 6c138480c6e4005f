#!lua
-- Add pieces to an open batch, all or none.
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1] id of the batch
-- ARGV[2] call token, or empty
-- ARGV[3] how long tokens are remembered (ms)
-- ARGV[4...] for each piece: id, entry, '1' if the client made the id else '0'
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

-- Keys of another type fail here, before the first write.
redis.call('XLEN', stream)
redis.call('SCARD', live)
redis.call('LLEN', keys.wake)
redis.call('ZCARD', batch_key(keys, 'claimable'))
for _, key in ipairs({keys.ids, keys.calls}) do redis.call('ZCARD', key) end
for _, key in ipairs({keys.jobs, keys.answers}) do redis.call('HLEN', key) end

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

local function is_known(job_id, is_indexed)
  local forget_at = is_indexed and redis.call('ZSCORE', keys.ids, job_id)
  if forget_at and tonumber(forget_at) > now_ms then return true end
  return redis.call('SISMEMBER', live, job_id) == 1
    or redis.call('HEXISTS', keys.jobs, job_id) == 1
end

local answer, added = {'stored'}, 0
for i = 0, count - 1 do
  local at = FIRST + i * FIELDS
  local job_id, entry, is_indexed = ARGV[at], ARGV[at + 1], ARGV[at + 2] == '1'
  if is_known(job_id, is_indexed) then
    answer[#answer + 1] = i
    answer[#answer + 1] = job_id
  else
    if is_indexed then redis.call('ZADD', keys.ids, '+inf', job_id) end
    redis.call('SADD', live, job_id)
    add(stream, entry)
    added = added + 1
  end
end
redis.pcall('HINCRBY', record, 'total', added)
refresh(keys, id)

if token ~= '' then
  redis.call('ZADD', keys.calls, now_ms + window_ms, token)
  redis.call('HSET', keys.answers, token,
    -- No push has -1 jobs, so a push with this token does not take this record for its
    -- own.
    cmsgpack.pack({count = -1, pieces = count, batch = id, answer = answer}))
  forget_calls(keys, now_ms, 4)
end
return answer
