-- cancel: undo whatever this level asked for: leave the queue, give back a grant that was not used (whose minimum hold
-- is void), and serve the next waiter. A request of this level that arrives later takes nothing.
-- KEYS  lock queue waiters meta history seats level_end token_end
-- ARGV  token level waiter(which leaves the queue, by default the token; '': none does, since another token keeps its
--       place, or it is inside another level)
--       owner(of one whose wait has run out, to be counted; else none)
-- ->    cancelled

-- NEEDS queue skip leave

local token, level, waits = ARGV[1], ARGV[2], ARGV[3] or ARGV[1]

if waits ~= '' then leave_queue(waits) end
load_lock()
read_meta()
local ended, r = call('GET', LEVEL_END), holder(token)
local is_ours = r and not ended and has_level(r, level)
local is_unused = is_ours and has_made(r.levels, level) and not end_of_first(r)
-- What only cools has ended already, and its end is recorded, or will be like that of any that has died.
if is_ours and (is_unused or is_live(r)) and not leave(token, r, level) then
  if is_unused then
    remove(token)
    strike(token)
  else
    end_run(token, r)
  end
end
if not ended and waits ~= '' and not is_live(holder(token)) then
  disown(token)
  if r and r.levels == 'ended' then remove(token) end
end
-- It supersedes nobody any more, least of all its own next attempt. Those that it has superseded are still told by
-- whom.
local newest_level, rest = recall('newest'):match('^%d+ (%S+)( .*)$')
if waits ~= '' and newest_level == level then note('newest', '0 ' .. level .. rest) end
serve_next()
commit()
-- A round of a quorum that failed may have cancelled the level before the wait was over.
if not ended or ended == 'c' and ARGV[4] then
  if ARGV[4] then count_skip('timed_out', ARGV[4]) end
  call('SET', LEVEL_END, ARGV[4] and 't' or 'c', 'PX', ENDED_FOR)
end
return {'cancelled'}
