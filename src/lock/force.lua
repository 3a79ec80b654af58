-- force: make holders give up the lock, or take it from them. It touches only those whose fences it is given, so that a
-- repetition does no harm to the next holder; of another program's key nothing tells it from the next one. Without
-- fences it only lists the holders. Records who has died.
-- KEYS  lock queue waiters meta history seats
-- ARGV  how(evict|now) by(percent-encoded) fence... ('foreign' alone: delete another program's key)
--       evict: a holder with a keeper, its own or that of a run inside it, is marked and told, and holds on until its
--       keeper has given up the lock; other holders are removed.
--       now: all are removed.
-- ->    free | foreign type value ttl_ms
--       holders, then for each "fence held|cooling|marked|removed lease_ms kept(0|1) owner"

-- NEEDS queue look leave

local how, by = ARGV[1], ARGV[2]

local named, seats_changed = {}, false
for i = 3, #ARGV do named[ARGV[i]] = true end

local function foreign()
  local reply = {'foreign', foreign_key()}
  if named.foreign then
    call('DEL', LOCK)
    seats, reserved_until = 0, nil
    serve_next()
    commit()
  end
  return reply
end

local function state_of(r)
  if not is_live(r) then return 'cooling' end
  return extra(r.tail, 'evict') and 'marked' or 'held'
end

local function take_away(token, r)
  if is_live(r) and not extra(r.tail, 'evict') then count('evicted') end
  if strike(token) then -- not for one that cools, whose end has been recorded
    local status, cause, excused = end_of_first(r)
    record_end(run_of(token, r, capacity), now, status or '-', cause or 'evicted,' .. by, excused)
  end
  if is_live(r) then tell_levels(r.levels, 'evicted') end
  remove(token)
  seats_changed = true
  return 'removed'
end

-- Returns the holder's state afterwards. Whoever forces asks again and again, and a message may have been lost.
local function evict(token, r)
  if how == 'now' or not is_live(r) or not has_keeper(r) then return take_away(token, r) end
  if not extra(r.tail, 'evict') then evict_holder(token, r, 'forced', by) end
  tell_levels(r.levels, 'evicted')
  return 'marked'
end

local ours = load_lock(true)
read_meta()
if not ours then return foreign() end
bury_dead_if_allowed() -- first: what has died is not evicted
if not next(holders) then return {'free'} end
local tokens = {}
for token in pairs(holders) do tokens[#tokens + 1] = token end
local reply = {'holders'}
for _, token in ipairs(tokens) do
  local r = holders[token]
  local lease, kept = num(math.max(0, r.expires - now)), has_keeper(r) and '1' or '0'
  local state = named[r.fence] and evict(token, r) or state_of(r)
  reply[#reply + 1] = r.fence .. ' ' .. state .. ' ' .. lease .. ' ' .. kept .. ' ' ..
    mark_departed(r, owner_of(r.tail))
end
if seats_changed then serve_next() end
if next(named) then commit() end
return reply
