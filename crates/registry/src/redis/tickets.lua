-- KEYS: conversation. ARGV: count, wcu. `state`, `window_ms` and `expiry_ms` stand before.
-- Nothing if the conversation is not known, else { next before it, horizon }: issued if count fits in between. If nobody
-- has metered it in this window before, then also now_ms, window, before, present.
local known = redis.call('HGET', KEYS[1], 'state')
if not known then
  return false
end
local first, horizon, window, before, present = struct.unpack(state, known)
-- Adding makes numbers of texts, and is quicker at it than `tonumber`.
local count, wcu = ARGV[1] + 0, ARGV[2] + 0
local following = count <= horizon - first and first + count or first

-- A window is a second, and nearly always still that of the last ticket. Then its load is all that changes.
if redis.call('TIME')[1] + 0 == window then
  present = present + wcu
  present = present < 2 ^ 53 and present or 2 ^ 53
  redis.call('HSET', KEYS[1], 'state', struct.pack(state, following, horizon, window, before, present))
  return { first, horizon }
end
