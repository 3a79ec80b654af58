-- release: give up one level, or all of a token's. A level given up twice answers the same twice.
-- A release of all levels may come from elsewhere than the keeper: it leaves a marker in meta that tells it.
-- KEYS  lock queue waiters meta
-- ARGV  token level('*': all) exit_status('-': unknown)
-- ->    released | cooling ms | kept levels | lost
local token, level, status = ARGV[1], ARGV[2], ARGV[3]

-- The markers that still matter: "token:until ...", kept for as long as the lease would have run.
local function mark_released(till)
  local kept = {token .. ':' .. num(till)}
  for mark in (call('HGET', META, 'released') or ''):gmatch('%S+') do
    if tonumber(mark:match(':(%d+)$')) > now then kept[#kept + 1] = mark end
  end
  call('HSET', META, 'released', table.concat(kept, ' '))
end

local function ended(r)
  if r and r.cools > now then return {'cooling', num(r.cools - now)} end
  return {'released'}
end

local r = load_lock() and holders[token]
if not r or r.expires <= now then
  local again = level ~= '*' and call('HGET', META, 'ended') == level
  return again and ended(r) or {'lost'}
end
local left = level == '*' and '' or levels_without(r.levels, level)
if left ~= '' then
  r.levels = left
  save(token, capacity)
  return {'kept', num(count_levels(left))}
end

local till, reply = r.expires, ended(r)
if r.cools > now then
  r.expires = now
  save(token, capacity)
  count_seats(capacity)
else
  remove(token)
end
local new_fields = call('HSET', META, 'ended', level,
  'last', string.format('%s %.0f %.0f %s %s', r.acquired, now, now - r.acquired, status, r.owner))
if level == '*' then mark_released(till) end
if new_fields > 0 then call('PEXPIRE', META, MEMORY) end -- meta counts its days from the grant, if it still knows it
serve_next()
return reply
