-- Part of the verbs that give somebody the lock.
-- NEEDS history

-- Whether one more may be granted the lock now.
local function fits(cap) return has_room(cap) and not barred and not is_on_hold() end

local is_buried = false

-- Makes a new acquisition, which lasts for `lease` unless it is renewed. Returns its record. `since` is when it began,
-- for one that this server has forgotten.
local function grant(token, claim, lease, counter, since)
  since = since or now
  strike(token) -- if it is listed, the token held the lock before and has lost it without knowing
  if not is_buried then bury_dead() end
  is_buried = true
  if holder(token) then remove(token) end
  local cap, hold = claim.capacity, claim.hold
  local r = {expires = now + lease, cools = hold > 0 and since + hold or 0, ttl = claim.ttl, hold = hold,
             fence = next_fence(), slot = cap > 1 and take_slot() or 0, acquired = since,
             waited = math.max(0, since - claim.born), kept = claim.kept, levels = claim.level, tail = claim.tail}
  holders[token], touched[token] = r, true
  take_seat(cap)
  lengthen_memory(claim.tail)
  if is_settled(r) then -- else settle does both
    count(counter)
    start_line(token, r, cap)
  end
  return r
end
