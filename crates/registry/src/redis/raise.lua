-- KEYS: conversation. ARGV: horizon. `state` stands before. Never creates, never lowers.
local known = redis.call('HGET', KEYS[1], 'state')
if not known then
  return
end
local first, horizon, window, before, present = struct.unpack(state, known)
if tonumber(ARGV[1]) > horizon then
  redis.call('HSET', KEYS[1], 'state', struct.pack(state, first, tonumber(ARGV[1]), window, before, present))
end
