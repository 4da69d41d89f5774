-- KEYS: conversation. ARGV: count, wcu, window_ms, idle_ms.
-- Nothing if the conversation is not known, else
-- { issued, next before it, horizon, first metering of this window, now_ms, window, before, present }.
local count = tonumber(ARGV[1])
local known = redis.call('HMGET', KEYS[1], 'next', 'horizon', 'window', 'before', 'present')
local first, horizon = tonumber(known[1]), tonumber(known[2])
if not first or not horizon then
  return false
end

local now = now_ms()
local meter = add({ known[3], known[4], known[5] }, tonumber(ARGV[2]), tonumber(ARGV[3]), now)
local issued = count <= horizon - first
redis.call('HSET', KEYS[1],
  'next', text(issued and first + count or first),
  'window', text(meter.window), 'before', text(meter.before), 'present', text(meter.present))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return { issued and 1 or 0, first, horizon, meter.turned and 1 or 0, now, meter.window, meter.before, meter.present }
