-- KEYS: conversation. ARGV: next, horizon, idle_ms. `state` stands before. What is there only rises.
local known = redis.call('HGET', KEYS[1], 'state')
local first, horizon, window, before, present = 0, 0, 0, 0, 0
if known then
  first, horizon, window, before, present = struct.unpack(state, known)
end
first = math.max(first, tonumber(ARGV[1]))
horizon = math.max(horizon, tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], 'state', struct.pack(state, first, horizon, window, before, present))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
