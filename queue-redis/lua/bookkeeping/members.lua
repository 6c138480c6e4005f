-- Reading a sorted set page by page. A page begins behind a position: a score, and the name
-- of a member that the set need not have any longer. So no member that stays is missed when
-- others come and go between two pages, also among members with the same score.

-- Whether a text sorts before another one, byte by byte, as the server sorts members of one
-- score. Lua's own comparison depends on the locale of the server.
local function is_before(one, other)
  for at = 1, math.min(#one, #other) do
    local a, b = one:byte(at), other:byte(at)
    if a ~= b then return a < b end
  end
  return #one < #other
end

-- How many members of a set sort before a position. An offset in a range of scores would
-- make the server pass all members before it.
local function count_before(set, score, name)
  local low = redis.call('ZCOUNT', set, '-inf', '(' .. score)
  local high = low + redis.call('ZCOUNT', set, score, score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if is_before(redis.call('ZRANGE', set, middle, middle)[1], name) then
      low = middle + 1
    else
      high = middle
    end
  end
  return low
end

-- Returns up to `count` members behind a position, or from the first on if there is no
-- position: a member and its score, and so on.
local function members_after(set, count, score, name)
  local first = score and count_before(set, score, name) or 0
  if score and redis.call('ZRANGE', set, first, first)[1] == name then first = first + 1 end
  return redis.call('ZRANGE', set, first, first + count - 1, 'WITHSCORES')
end

-- Returns up to `count` members before a position, or from the last on if there is no
-- position, in the reverse order.
local function members_before(set, count, score, name)
  local size = redis.call('ZCARD', set)
  local passed = score and size - count_before(set, score, name) or 0
  return redis.call('ZRANGE', set, passed, passed + count - 1, 'REV', 'WITHSCORES')
end
