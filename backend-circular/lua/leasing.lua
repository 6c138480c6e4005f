-- How an entry is rewritten when its job is leased. Needs pattern.lua.

-- The letter that says what the end of the lease requires: see lease.rs.
local function letter_of(job, attempt)
  if job.unique_key and (job.expires_at or 0) > 0 then return 'k' end
  return attempt >= job.max_attempts and 'l' or 'p'
end

-- For the common case, a job without options on its first delivery: returns {entry,
-- letter} as several results. Returns nil for any other job.
local function leased_fresh(entry)
  local id_bytes = entry:byte(11) or 0
  if entry:sub(1, 8) ~= '\245RQ\1\0\5\0\0' or entry:sub(9, 10) == '\0\0'
    or id_bytes == 0 or #entry < 11 + id_bytes then return nil end
  local letter = entry:sub(9, 10) == '\0\1' and 'l' or 'p'
  return '\245RQ\1\0\5\0\1' .. entry:sub(9), letter
end

-- For any other job: returns {entry, letter, its own lease (ms)}, or nil for an element
-- that is not an entry.
local function leased_again(keys, entry, is_counted)
  local job = read_entry(entry)
  if not job then return nil end
  -- A leased job cannot expire, so its unique key must not expire either.
  if (job.expires_at or 0) > 0 then hold_until(keys.unique, job, 0) end
  local attempt = job.attempt + (is_counted and 1 or 0)
  return with_attempt(entry, attempt), letter_of(job, attempt), job.lease_ms
end

-- The id of a bare payload, with its length, as it ends the header of its entry.
local function bare_id(nonce, number)
  local id = nonce .. '-bare-' .. number
  return string.char(#id) .. id
end
