-- cancel: as if it had never asked: leave the queue, give back a grant that was not used, and let the next one have
-- it. What was not used does not cool. A request of this level that comes later takes nothing.
-- WITH  lock memory history grant queue
-- KEYS  lock queue waiters meta history
-- ARGV  token level waiter('': it goes on waiting, with another token; by default the token itself)
-- ->    cancelled
local token, level, waits = ARGV[1], ARGV[2], ARGV[3] or ARGV[1]

if waits ~= '' then leave_queue(waits) end
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
