#!lua flags=no-writes
-- Read a page of a sorted set of jobs, and what is stored of each job. All of it is of one
-- moment: what a job had before it moved is never mixed with what it has now.
--
-- KEYS[1] set      ZSET  name -> score
-- KEYS[2] errors   HASH  id -> last error
-- KEYS[3] entries  HASH  name -> entry; left out if no entries are wanted
-- ARGV[1] 'served' from the lowest score on, 'newest' from the highest score on
-- ARGV[2] maximum number of members
-- ARGV[3] score, and ARGV[4] name, behind which the page begins; neither for the first page
--
-- Returns {name, score, entry or false, error or false, ...}. The id of a job is in its
-- entry; a job without one has its name as the id.
--
-- Library: entry, members
local set, errors, entries = KEYS[1], KEYS[2], KEYS[3]
local order, count, score, name = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

local function read_page()
  if order == 'newest' then return members_before(set, count, score, name) end
  return members_after(set, count, score, name)
end

local page, found = read_page(), {}
for i = 1, #page, 2 do
  local entry = entries and redis.call('HGET', entries, page[i])
  local job = entry and read_entry(entry)
  local last_error = redis.call('HGET', errors, job and job.id or page[i])
  found[#found + 1], found[#found + 2] = page[i], page[i + 1]
  found[#found + 1], found[#found + 2] = entry or false, last_error
end
return found
