-- Reads entries of pieces. In such an entry, the batch's id follows the unique key.
-- Needs relq-redis's entry.lua, whose reader skips the batch's id.
local PIECE = 64

local read_any = read_entry

-- Parses an entry as relq-redis's `read_entry` does, and adds the batch's id as the
-- field `batch`.
local function read_entry(entry)
  local job = read_any(entry)
  if not job or bit.band(job.flags, PIECE) == 0 then return job end
  local at = 12 + #job.id
  if bit.band(job.flags, 4) ~= 0 then at = at + 8 end
  if bit.band(job.flags, 8) ~= 0 then at = at + 8 end
  if job.keep_ms then at = at + 8 end
  if job.leader then at = at + 9 + #job.leader end
  if job.unique_key then at = at + 1 + #job.unique_key end
  if #entry < at or #entry < at + entry:byte(at) then return nil end
  job.batch, job.batch_offset = entry:sub(at + 1, at + entry:byte(at)), at
  return job
end

-- Returns the entry of a piece as that of a plain job, without the batch's id.
local function without_batch(entry, job)
  return entry:sub(1, 4) .. string.char(job.flags - PIECE)
    .. entry:sub(6, job.batch_offset - 1) .. entry:sub(job.batch_offset + 1 + #job.batch)
end
