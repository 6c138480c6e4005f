#!lua
-- Store jobs as they were in a queue: ready, scheduled or dead (R34).
--
-- KEYS[1...] the bookkeeping keys, then the pattern keys: see keys.rs
-- ARGV[1...] the fields of each job: see pushing.lua. But the third one is when the job is
--            due or has died, or empty for a ready one; the fourth when it expires (both ms
--            since 1970, the latter 0 for never); the seventh its value in the hash
--            `errors`, or empty. That of a dead job begins with the letter r. The entry
--            has the time of the push if that is known.
--
-- Returns the duplicates as `push_jobs` does.
--
-- Library: entry, side_records, moves, pushing
local keys = bind_keys()
local FIRST, DEAD_LETTER = 1, 'r'
local now_ms = server_ms()

-- If a key has another type, the script fails here, before its first write.
check_keys(keys)
local new = begin_push(keys, FIRST, now_ms)

local function read_restored(at)
  local why = ARGV[at + 6]
  return {
    id = ARGV[at], at_ms = tonumber(ARGV[at + 2]), expires_at = tonumber(ARGV[at + 3]),
    priority = tonumber(ARGV[at + 4]), unique_key = ARGV[at + 5], why = why,
    is_dead = why:sub(1, 1) == DEAD_LETTER, is_indexed = true, has_free_id = true,
  }
end

local function bury_restored(job, entry)
  new.is_kept[job.id] = true
  add_pair(new.kept, job.id, entry)
  redis.call('ZADD', keys.dead, behind_equals(keys.dead, job.at_ms), job.id)
end

local function restore(job, entry)
  entry = note_new_job(new, job, entry, job.is_dead and DEAD .. job.why or UNFINISHED)
  if job.why ~= '' then redis.call('HSET', keys.errors, job.id, job.why) end
  if job.is_dead then
    bury_restored(job, entry)
    return
  end
  if not job.at_ms then entry = with_time(entry, read_entry(entry), READY_TIME, now_ms) end
  place_new_job(keys, new, job, entry, job.at_ms)
end

for at = FIRST, #ARGV, PUSH_FIELDS do
  local job = read_restored(at)
  if not note_duplicate(keys, new, job, (at - FIRST) / PUSH_FIELDS) then
    restore(job, ARGV[at + 1])
  end
end
finish_push(keys, new)
return new.duplicates
