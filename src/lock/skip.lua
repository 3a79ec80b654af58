-- Part of the verbs by which takers leave without the lock: counting them.
-- NEEDS lock memory
--   skipped   in META, words after a space each: REASON=COUNT, of held timed_out done superseded full attempts, and
--             last=AT,REASON,HOLDER,HOST, with on_hold or cooling instead of held where that was why

-- Counts one only for a lock that has been used, so that no key is made, and not on a server that is out of memory.
local function count_skip(reason, its_owner, detail)
  if meta.state == '' then return end
  local words = recall('skipped')
  local holder, host = its_owner:match('^(%S*) (%S*)')
  words = with_extra(words, reason, num((tonumber(extra(words, reason)) or 0) + 1))
  words = with_extra(words, 'last', table.concat({now, detail or reason, holder or '', host or ''}, ','))
  redis.pcall('HSET', META, 'skipped', words)
  if is_old then keep_memory() end
end
