-- What the scripts that meter share; it stands before them.

-- The server's clock, so that all who ask agree.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- `Meter::add` of the core.
local function add(meter, wcu, window_ms, now)
  local window = tonumber(meter[1]) or 0
  local before = tonumber(meter[2]) or 0
  local present = tonumber(meter[3]) or 0
  local current = math.floor(now / window_ms)
  local turned = current > window
  if turned then
    before = current == window + 1 and present or 0
    window, present = current, 0
  end
  return { window = window, before = before, present = math.min(present + wcu, 2 ^ 53), turned = turned }
end
