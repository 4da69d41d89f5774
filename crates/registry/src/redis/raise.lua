-- KEYS: conversation. ARGV: horizon. Never creates, never lowers.
local old = tonumber(redis.call('HGET', KEYS[1], 'horizon'))
if old and tonumber(ARGV[1]) > old then
  redis.call('HSET', KEYS[1], 'horizon', ARGV[1])
end
