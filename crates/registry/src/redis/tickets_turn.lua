-- The rest of tickets.lua, behind what the meters share: the first ticket of a window. To define functions takes time, which
-- the many others are spared.
local now = now_ms()
local meter = add({ window, before, present }, wcu, window_ms, now)
local turned = struct.pack(state, following, horizon, meter.window, meter.before, meter.present)
redis.call('HSET', KEYS[1], 'state', turned)
redis.call('PEXPIRE', KEYS[1], expiry_ms)
if not meter.turned then
  return { first, horizon }
end
return { first, horizon, now, meter.window, meter.before, meter.present }
