-- KEYS: conversation. ARGV: wcu, epoch, window_ms. Never creates.
if redis.call('EXISTS', KEYS[1]) == 0 then
  return
end
redis.call('HINCRBY', KEYS[1], 'throttles', 1)

local known = redis.call('HMGET', KEYS[1], 'throttled_epoch', 'throttled_window', 'throttled_before', 'throttled_present')
local epoch, newest = tonumber(ARGV[2]), tonumber(known[1]) or 1
if epoch < newest then
  return
end
local meter = epoch == newest and { known[2], known[3], known[4] } or {}
meter = add(meter, tonumber(ARGV[1]), tonumber(ARGV[3]), now_ms())
redis.call('HSET', KEYS[1],
  'throttled_epoch', ARGV[2], 'throttled_window', meter.window,
  'throttled_before', meter.before, 'throttled_present', meter.present)
