-- Part of the verbs that give somebody the lock.
local function lowest_free_slot()
  local used, slot = {}, 0
  for _, r in pairs(holders) do used[r.slot] = true end
  while used[slot] do slot = slot + 1 end
  return slot
end

-- A success is remembered for as long as the longest --once or --once-per that was ever asked for needs it.
local function lengthen_memory(tail)
  local longest = math.max(extra(tail, 'once') and 34560000000 or 0, tonumber(extra(tail, 'per')) or 0) -- 400 days
  if longest > math.max(LIFE, meta_number('memory')) then note('memory', num(longest)) end
end

-- Makes a new acquisition, which lasts for `lease` unless it is renewed. Returns its record. `since` is when it began,
-- for one that this server has forgotten.
local function grant(token, cap, lease, level, tail, counter, since)
  since = since or now
  strike(token) -- if it is listed, the token held the lock before and has lost it without knowing
  bury_dead()
  local hold = tonumber(extra(tail, 'hold'))
  local r = {expires = now + lease, cools = hold and since + hold or 0, acquired = num(since), levels = level,
             tail = tail, fence = num(math.max(meta_number('floor') + 1, now_us)),
             slot = cap > 1 and lowest_free_slot() or 0}
  holders[token], touched[token] = r, true
  take_seat(cap, until_when(r))
  note('floor', r.fence)
  count(counter)
  lengthen_memory(tail)
  if is_settled(r) then start_line(token, r, cap) end
  return r
end
