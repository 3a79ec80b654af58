-- acquire: take the lock, join its queue, or learn who holds it. Repeatable: the same level is counted once.
-- KEYS  lock queue waiters meta
-- ARGV  token level capacity ttl_ms how(once|queue|reenter) ticket('' the first time) min_hold_ms channel owner
--       max_lease_ms(0: not in a quorum)
-- ->    granted fence slot lease_ms
--       lost                                                        (reenter: this token does not hold)
--       busy sleep_ms ticket held_ms lease_ms cooling_ms owner now_ms
--       foreign sleep_ms ticket type value ttl_ms now_ms            (another program's key)
--       mismatch capacity                                           (held with another number of slots)
--       upgrade                                                     (shared by this token, exclusive asked)
--       young uptime_ms                                             (up for less than max_lease: it may have forgotten)
local token, level, cap, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local how, ticket, min_hold, channel, owner = ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]
local max_lease = tonumber(ARGV[10])
local wait = how == 'queue'

local function reenter(r)
  if capacity == 0 and cap == 1 then return {'upgrade'} end
  if not (',' .. r.levels .. ','):find(',' .. level .. ',', 1, true) then r.levels = r.levels .. ',' .. level end
  r.expires = math.max(r.expires, now + ttl)
  r.cools = math.max(r.cools, now + min_hold)
  save(token, capacity)
  return {'granted', r.fence, num(r.slot), num(r.expires - now)}
end

-- Waiting does not mend it. Whoever stood behind may fit.
local function mismatch()
  local reply = {'mismatch', num(capacity)}
  leave_queue(token)
  serve_next()
  return reply
end

local function join_queue()
  local has_none = ticket == ''
  if has_none then
    ticket = num(math.max(now_us, tonumber(call('HGET', META, 'ticket') or 0) + 1))
    call('HSET', META, 'ticket', ticket)
    call('PEXPIRE', META, MEMORY)
  end
  local is_there = call('ZADD', QUEUE, 'NX', ticket, token) == 0
  if has_none and is_there then -- the reply with its ticket was lost
    local text = call('HGET', WAITERS, token)
    local w = text and parse_waiter(text)
    if w then ticket = w.ticket end
  end
end

-- A refused waiter counts as alive a little longer than the sleep it is told.
local function sleep()
  local rank = wait and call('ZRANK', QUEUE, token) or 0
  local ms = patience(rank)
  if wait then
    call('HSET', WAITERS, token, string.format('%d %.0f %.0f %s %s %s %s',
      cap, now, now + ms + CONFIRM, ticket, level, channel, owner))
    call('PEXPIRE', QUEUE, 2 * LONGEST)
    call('PEXPIRE', WAITERS, 2 * LONGEST)
  end
  return num(ms)
end

local function first_to_leave()
  local first
  for _, r in pairs(holders) do
    if not first or until_when(r) < until_when(first) then first = r end
  end
  return first
end

local function busy()
  local ms, r = sleep(), first_to_leave()
  local cooling = r.expires <= now and r.cools - now or 0
  return {'busy', ms, ticket, num(now - r.acquired), num(math.max(0, r.expires - now)), num(cooling), r.owner, num(now)}
end

local function foreign()
  local kind = call('TYPE', LOCK).ok
  local value = kind == 'string' and call('GETRANGE', LOCK, 0, 127) or ''
  return {'foreign', sleep(), ticket, kind, value, num(call('PTTL', LOCK)), num(now)}
end

local function take(queued)
  if queued then leave_queue(token) end
  local r = {expires = now + ttl, cools = now + min_hold, levels = level, owner = owner}
  grant(token, cap, r, ticket == '' and 'acquired' or 'waited')
  if queued then serve_next() end
  return {'granted', r.fence, num(r.slot), num(ttl)}
end

-- At least so long: what INFO says is the difference of two clock readings cut to seconds, up to one too many.
local function uptime()
  return math.max(0, tonumber(call('INFO', 'server'):match('uptime_in_seconds:(%d+)')) - 1) * 1000
end

if max_lease > 0 and uptime() < max_lease then return {'young', num(uptime())} end
local ours = load_lock()
local mine = holders[token]
if capacity and cap ~= capacity and (cap > 1 or capacity > 1) then return mismatch() end
if mine and mine.expires > now then return reenter(mine) end
if how == 'reenter' then return {'lost'} end
if wait then join_queue() end
local our_turn, queued = walk(token, cap, false)
if not ours then return foreign() end
if not our_turn then return busy() end
return take(queued)
