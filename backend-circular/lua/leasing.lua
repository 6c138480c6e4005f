-- How an entry is written when its job is leased. Needs pattern.lua.

-- What the end of a lease takes: see lease.rs.
local function letter_of(job, attempt)
  if job.unique_key and (job.expires_at or 0) > 0 then return 'k' end
  return attempt >= job.max_attempts and 'l' or 'p'
end

-- A job without options on its first delivery, as most are: {entry, letter}, as several
-- results; or nil.
local function leased_fresh(entry)
  local id_bytes = entry:byte(11) or 0
  if entry:sub(1, 8) ~= '\245RQ\1\0\5\0\0' or entry:sub(9, 10) == '\0\0'
    or id_bytes == 0 or #entry < 11 + id_bytes then return nil end
  local letter = entry:sub(9, 10) == '\0\1' and 'l' or 'p'
  return '\245RQ\1\0\5\0\1' .. entry:sub(9), letter
end

-- Any other: {entry, letter, its own lease (ms)}; or nil for what is no entry.
local function leased_again(keys, entry, is_counted)
  local job = read_entry(entry)
  if not job then return nil end
  -- While it is leased it cannot expire, so its key is not free then either.
  if (job.expires_at or 0) > 0 then hold_until(keys.unique, job, 0) end
  local attempt = job.attempt + (is_counted and 1 or 0)
  return with_attempt(entry, attempt), letter_of(job, attempt), job.lease_ms
end

-- The id of a bare payload, with its length, as the header of its entry ends.
local function bare_id(nonce, number)
  local id = nonce .. '-bare-' .. number
  return string.char(#id) .. id
end
