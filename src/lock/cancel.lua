-- cancel: as if it had never asked: leave the queue, give back a grant that was not used, and let the next one have
-- it. What was not used does not cool. A request of this level that comes later takes nothing.
-- WITH  lock memory history queue
-- KEYS  lock queue waiters meta history
-- ARGV  token level
-- ->    cancelled
local token, level = ARGV[1], ARGV[2]

leave_queue(token)
load_lock()
read_meta()
local r = holders[token]
if r and has_level(r, level) and fate(level) ~= 'r' then
  r.levels, touched[token] = levels_without(r.levels, level), true
  if r.levels == '' then
    remove(token)
    strike(token)
  end
end
if not fate(level) then remember(level, 'c') end
serve_next()
commit()
return {'cancelled'}
