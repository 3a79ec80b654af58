-- cancel: undo whatever this level asked for: leave the queue, give back a grant that was not used (whose minimum hold
-- is void), and serve the next waiter. A request of this level that arrives later takes nothing.
-- WITH  lock memory history grant queue
-- KEYS  lock queue waiters meta history
-- ARGV  token level waiter('': it keeps its place in the queue, for another token; by default the token itself)
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
    count_seats(capacity)
    strike(token)
  end
end
if not fate(level) then remember(level, 'c') end
-- It supersedes nobody any more, least of all its own next attempt. Those that it has superseded are told by whom.
local newest_level, rest = (meta.newest or ''):match('^%d+ (%S+)( .*)$')
if waits ~= '' and newest_level == level then note('newest', '0 ' .. level .. rest) end
serve_next()
commit()
return {'cancelled'}
