-- Rewrites the entry of a job that a claim leases. Needs pattern.lua.

-- Returns the last letter of a lease's token. It says what must be done when the lease
-- ends: lease.rs lists the letters.
local function letter_of(job, attempt)
  if job.unique_key and (job.expires_at or 0) > 0 then return 'k' end
  return attempt >= job.max_attempts and 'l' or 'p'
end

-- Handles the common case: a job without options that is delivered for the first time.
-- Returns the first 8 bytes of its entry with this delivery counted, and its letter, as
-- two results. Returns nil for any other job. `entry` may be its beginning only.
local function leased_fresh(entry)
  local id_bytes = entry:byte(11) or 0
  if entry:sub(1, 8) ~= '\245RQ\1\0\5\0\0' or entry:sub(9, 10) == '\0\0'
    or id_bytes == 0 or #entry < 11 + id_bytes then return nil end
  local letter = entry:sub(9, 10) == '\0\1' and 'l' or 'p'
  return '\245RQ\1\0\5\0\1', letter
end

-- Handles an entry that was delivered before or has options. Counts this delivery if
-- `is_counted`. Returns the first 8 bytes of the entry, its letter and the length of the
-- job's own lease (ms), as three results; or nil for an element that is not an entry.
local function leased_again(keys, entry, is_counted, now_ms)
  local job = read_entry(entry)
  if not job then return nil end
  hold_while_leased(keys.unique, job, now_ms)
  local attempt = job.attempt + (is_counted and 1 or 0)
  return start_with_attempt(entry, attempt), letter_of(job, attempt), job.lease_ms
end

-- Returns the end of the header of a bare payload's entry: the length of the new id,
-- and the id.
local function bare_id(nonce, number)
  local id = nonce .. '-bare-' .. number
  return string.char(#id) .. id
end
