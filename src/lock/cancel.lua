-- cancel: as if it had never asked: leave the queue, give back a grant that was not used, and let the next one have
-- it. What was not used does not cool.
-- KEYS  lock queue waiters meta
-- ARGV  token level
-- ->    cancelled
local token, level = ARGV[1], ARGV[2]

leave_queue(token)
local r = load_lock() and holders[token]
if r then
  r.levels = levels_without(r.levels, level)
  if r.levels == '' then remove(token) else save(token, capacity) end
end
serve_next()
return {'cancelled'}
