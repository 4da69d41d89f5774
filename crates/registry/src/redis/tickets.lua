-- KEYS: conversation. ARGV: count, wcu. `window_ms` and `expiry_ms` stand before.
-- Nothing if the conversation is not known, else { next before it, horizon }: issued if count fits in between. If nobody
-- has metered it in this window before, then also now_ms, window, before, present.
local known = redis.call('HMGET', KEYS[1], 'next', 'horizon', 'window', 'present')
if not known[1] or not known[2] then
  return false
end
-- Adding makes numbers of texts, and is quicker at it than `tonumber`. Numbers that a call is given are written with all
-- of their digits.
local first, horizon, count = known[1] + 0, known[2] + 0, ARGV[1] + 0
local following = count <= horizon - first and first + count or first

-- A window is a second, and nearly always still that of the last ticket. Then its load is all that changes.
if redis.call('TIME')[1] == known[3] then
  local present = known[4] + ARGV[2]
  redis.call('HSET', KEYS[1], 'next', following, 'present', present < 2 ^ 53 and present or 2 ^ 53)
  return { first, horizon }
end

local now = now_ms()
local meter = add({ known[3], redis.call('HGET', KEYS[1], 'before'), known[4] }, ARGV[2] + 0, window_ms, now)
redis.call('HSET', KEYS[1],
  'next', following, 'window', meter.window, 'before', meter.before, 'present', meter.present)
redis.call('PEXPIRE', KEYS[1], expiry_ms)
if not meter.turned then
  return { first, horizon }
end
return { first, horizon, now, meter.window, meter.before, meter.present }
