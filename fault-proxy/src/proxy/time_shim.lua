local redis = (function(real, argv)
  local last = #argv
  local time, names_entries = {argv[last - 3], argv[last - 2]}, argv[last - 1] == 'named'
  local draws = {}
  for place in argv[last]:gmatch('%d+') do draws[#draws + 1] = tonumber(place) end
  for at = last, last - 3, -1 do argv[at] = nil end
  local function asks_time(name, ...)
    return type(name) == 'string' and name:upper() == 'TIME' and select('#', ...) == 0
  end
  local function named(...)
    local words = {...}
    if not names_entries or words[1]:upper() ~= 'XADD' then return ... end
    for at = 3, #words do
      if words[at] == '*' then
        words[at] = string.format('%.0f-*', time[1] * 1000 + math.floor(time[2] / 1000))
        break
      end
    end
    return unpack(words)
  end
  local function sorted(list)
    table.sort(list)
    return list
  end
  local function arranged(list)
    for _, place in ipairs(draws) do
      if place < #list then table.insert(list, 1, table.remove(list, place + 1)) end
    end
    return list
  end
  local function some(list, count)
    if not count then return list[1] or false end
    return {unpack(list, 1, math.min(tonumber(count), #list))}
  end
  local keys, drawn = nil, 0
  local function next_key()
    keys = keys or sorted(real.call('KEYS', '*'))
    drawn = drawn + 1
    local place = draws[math.min(drawn, #draws)] or drawn - 1
    return keys[place % math.max(#keys, 1) + 1] or false
  end
  local function drawn_by(name, key, ...)
    name = type(name) == 'string' and name:upper()
    if name == 'RANDOMKEY' then return next_key() end
    keys = nil
    if name == 'SRANDMEMBER' then
      return some(arranged(sorted(real.call('SMEMBERS', key))), ...)
    elseif name == 'ZRANDMEMBER' then
      return some(arranged(real.call('ZRANGE', key, 0, -1)), ...)
    elseif name == 'SCAN' or name == 'SSCAN' then
      local page = real.call(name, key, ...)
      return {page[1], arranged(sorted(page[2]))}
    end
  end
  local function without_idle_times(reply, name)
    if name:upper() == 'XPENDING' and type(reply[1]) == 'table' then
      for _, entry in ipairs(reply) do entry[3] = 0 end
    end
    return reply
  end
  local function call(...)
    if names_entries then
      local reply = drawn_by(...)
      if reply ~= nil then return reply end
    end
    local reply = real.call(named(...))
    if asks_time(...) then return {time[1], time[2]} end
    return names_entries and without_idle_times(reply, ...) or reply
  end
  local function pcall(...)
    keys = nil
    local reply = real.pcall(named(...))
    if asks_time(...) and not reply.err then return {time[1], time[2]} end
    return reply
  end
  return setmetatable({call = call, pcall = pcall}, {__index = real})
end)(redis, ARGV)
