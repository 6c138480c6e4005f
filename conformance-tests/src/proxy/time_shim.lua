local redis = (function(real, argv)
  local last = #argv
  local time = {argv[last - 1], argv[last]}
  argv[last], argv[last - 1] = nil, nil
  local function asks_time(name, ...)
    return type(name) == 'string' and name:upper() == 'TIME' and select('#', ...) == 0
  end
  local function call(...)
    local reply = real.call(...)
    if asks_time(...) then return {time[1], time[2]} end
    return reply
  end
  local function pcall(...)
    local reply = real.pcall(...)
    if asks_time(...) and not reply.err then return {time[1], time[2]} end
    return reply
  end
  return setmetatable({call = call, pcall = pcall}, {__index = real})
end)(redis, ARGV)
