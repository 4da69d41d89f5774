-- KEYS: conversation. Changes nothing. Nothing if it is not known, else
-- { now_ms, window, before, present, throttled window, before, present, throttled epoch, throttles }.
local known = redis.call('HMGET', KEYS[1],
  'next', 'window', 'before', 'present',
  'throttled_window', 'throttled_before', 'throttled_present', 'throttled_epoch', 'throttles')
if not known[1] then
  return false
end
local answer = { now_ms() }
for i = 2, #known do
  answer[i] = tonumber(known[i]) or 0
end
return answer
