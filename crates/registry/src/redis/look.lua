-- KEYS: conversation. `state` stands before. Changes nothing. Nothing if it is not known, else
-- { now_ms, window, before, present, throttled window, before, present, throttled epoch, throttles }.
local known = redis.call('HMGET', KEYS[1],
  'state', 'throttled_window', 'throttled_before', 'throttled_present', 'throttled_epoch', 'throttles')
if not known[1] then
  return false
end
local _, _, window, before, present = struct.unpack(state, known[1])
local answer = { now_ms(), window, before, present }
for i = 2, #known do
  answer[i + 3] = tonumber(known[i]) or 0
end
return answer
