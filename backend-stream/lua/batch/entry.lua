-- Reads entries of pieces: the batch's id follows the unique key. Needs relq-redis's
-- entry.lua, which skips the batch's id.
local PIECE = 64

local read_any = read_entry

-- Like the plain `read_entry`, with the batch's id as `batch`.
local function read_entry(entry)
  local job = read_any(entry)
  if not job or job.flags < PIECE then return job end
  local at = 12 + #job.id
  if bit.band(job.flags, 4) ~= 0 then at = at + 8 end
  if bit.band(job.flags, 8) ~= 0 then at = at + 8 end
  if job.unique_key then at = at + 1 + #job.unique_key end
  if #entry < at or #entry < at + entry:byte(at) then return nil end
  job.batch, job.batch_offset = entry:sub(at + 1, at + entry:byte(at)), at
  return job
end

-- The entry without its batch: that of a plain job.
local function without_batch(entry, job)
  return entry:sub(1, 4) .. string.char(job.flags - PIECE)
    .. entry:sub(6, job.batch_offset - 1) .. entry:sub(job.batch_offset + 1 + #job.batch)
end
