local redis = (function(real, argv)
  local last = #argv
  local time, names_entries = {argv[last - 2], argv[last - 1]}, argv[last] == 'named'
  argv[last], argv[last - 1], argv[last - 2] = nil, nil, nil
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
  local function call(...)
    local reply = real.call(named(...))
    if asks_time(...) then return {time[1], time[2]} end
    return reply
  end
  local function pcall(...)
    local reply = real.pcall(named(...))
    if asks_time(...) and not reply.err then return {time[1], time[2]} end
    return reply
  end
  return setmetatable({call = call, pcall = pcall}, {__index = real})
end)(redis, ARGV)
