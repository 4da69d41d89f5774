-- KEYS: conversation. ARGV: next, horizon, idle_ms. What is there only rises.
local function rise(field, value)
  local old = tonumber(redis.call('HGET', KEYS[1], field))
  if not old or tonumber(value) > old then
    redis.call('HSET', KEYS[1], field, value)
  end
end

rise('next', ARGV[1])
rise('horizon', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
