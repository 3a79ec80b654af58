-- recall: what became of an acquisition that its keeper believed it held. Reads only.
-- KEYS  lock queue waiters meta history seats level_end token_end
-- ARGV  token level [fence]
-- ->    released (by somebody else) | evicted forced by | unknown

-- NEEDS clock

local is_released = call('GET', LEVEL_END) == 'r' or call('EXISTS', TOKEN_END) == 1
if is_released then return {'released'} end
local fence = ARGV[3]
for _, entry in ipairs(fence and call('LRANGE', HISTORY, -20, -1) or {}) do
  local number, how = entry:match('^(%d+) %d+ %d+ %d+ %d+ (%S*)')
  local by = how and how:match('^evicted,(.*)$')
  if number == fence and by then return {'evicted', 'forced', by} end
  if number == fence and how == 'released' then return {'released'} end
end
return {'unknown'}
