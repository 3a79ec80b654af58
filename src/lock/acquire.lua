-- acquire: take the lock, join its queue, or learn who holds it. It may be repeated: a level counts only once.
-- WITH  lock memory history grant
-- KEYS  lock queue waiters meta history
-- ARGV  token level capacity ttl_ms how ticket('' the first time) waited_ms owner max_lease_ms(0: not in a quorum),
--       then any of hold=MS kept=1 poll=1 latest=1 replace=1 once=ID per=MS max-waiting=N
--       waiter=ID (in a quorum, where each question has a token of its own: identifies the waiter)
--       how   once: take it or learn who holds it; queue: take it or join the queue; reenter: only if the token holds;
--             restore: past any queue and for the whole lease, on a server that has lost what most others still have;
--             waited_ms is the age of the acquisition then
-- ->    granted fence slot lease_ms          (a new grant lasts 5 s at most, until its first renewal;
--                                             fence 0: re-entry before the quorum's fence has been settled here)
--       lost                                 (reenter: this token does not hold)
--       upgrade capacity                     (reenter: the token holds in a mode that does not allow this one)
--       once id                              (reenter: the token holds for another ID)
--       evicted kind by                      (reenter: the token must give up the lock)
--       busy sleep_ms ticket held_ms lease_ms cooling_ms owner now_ms capacity place waiting
--       foreign sleep_ms ticket type value ttl_ms now_ms place     (another program's key)
--       full waiting                         (max-waiting)
--       done granted_ms ended_ms now_ms owner id                   (once, per: that success counts for this one too)
--       superseded owner                     (latest, replace: by a newer waiter)
--       cancelled                            (this level was cancelled or released before)
--       young uptime_ms                      (up for less than max_lease: the server may have forgotten a lock)
--       In a quorum `granted` and `busy` are followed by how many ms ago the last run was granted that ended with 0
--       (-1: none is known), and each answer ends with the server's run_id.
local token, level, cap, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local how, ticket, waited, owner = ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8]
local max_lease = tonumber(ARGV[9])
local wait, has_waited, in_quorum = how == 'queue', ticket ~= '', max_lease > 0
local lease = how == 'restore' and ttl or math.min(ttl, SHORT)
local born = now - waited
local KNOWN = {hold = true, kept = true, poll = true, latest = true, replace = true, once = true, per = true}
local me = token               -- our name in the queue

-- Returns our owner and extras, as a record or a waiter keeps them, and how many may wait; sets `me`.
local function read_options()
  local words, max_waiting = {owner, 'ttl=' .. num(ttl), 'born=' .. num(born)}, nil
  for i = 10, #ARGV do
    local name, value = ARGV[i]:match('^([%a-]+)=(%S*)$')
    if name == 'max-waiting' then max_waiting = tonumber(value)
    elseif name == 'waiter' then me = value
    elseif KNOWN[name] then words[#words + 1] = ARGV[i]
    else error('unknown option ' .. ARGV[i]) end
  end
  if in_quorum then words[#words + 1] = 'poll=1 quorum=1' end
  return table.concat(words, ' '), max_waiting
end

local tail, max_waiting = read_options()
local polls = extra(tail, 'poll') ~= nil
local newest_only = extra(tail, 'latest') or extra(tail, 'replace')

local ours = load_lock()
read_meta()
local past, mine = fate(level), holders[token]

-- Most often the lock is free and nobody waits; then nothing below is needed.
local is_plain = not (past or mine or newest_only or in_quorum) and how ~= 'reenter' and not success_for(tail)
if is_plain and fits(cap) and call('ZCARD', QUEUE) == 0 then
  local r = grant(token, cap, lease, level, tail, has_waited and 'waited' or 'acquired')
  write_meta() -- first: a server that is out of memory refuses it, and then nothing has been written
  write_all()
  return {'granted', r.fence, num(r.slot), num(lease)}
end

-- WITH  queue
local function reenter(r)
  local kind, by = eviction_of(r)
  if kind then return {'evicted', kind, by} end
  if capacity ~= 1 and capacity ~= cap then return {'upgrade', num(capacity)} end
  local once, theirs = extra(tail, 'once'), extra(r.tail, 'once')
  if once and theirs and once ~= theirs then return {'once', theirs} end
  if not has_level(r, level) then r.levels = r.levels .. ',' .. level end
  local hold = tonumber(extra(tail, 'hold'))
  if hold then
    r.tail = with_extra(r.tail, 'hold', num(math.max(hold, tonumber(extra(r.tail, 'hold')) or 0)))
    r.cools = math.max(r.cools, born + hold)
  end
  extend(token, r, lease, ttl)
  note_end(r, level, math.min(r.expires, now + ttl))
  commit()
  local is_own = in_quorum and how == 'reenter' and not extra(r.tail, 'settled') -- not the fence that the token has
  return {'granted', is_own and '0' or r.fence, num(r.slot), num(r.expires - now)}
end

-- Leaves the queue for good, with that reply.
local function turn_away(reply)
  leave_queue(me)
  serve_next()
  commit()
  return reply
end

local function done(success)
  local granted, ended, by, id = success:match('^(%d+) (%d+) (.*) (%S*)$')
  return turn_away({'done', granted, ended, num(now), by, id})
end

-- The last taker that asked with --latest or --replace: its token, level, birth and owner.
local function newest()
  local since, its_level, its_token, its_owner = (meta.newest or ''):match('^(%d+) (%S+) (%S+) (.*)$')
  return its_token, its_level, tonumber(since), its_owner
end

local function superseded()
  local _, _, _, its_owner = newest()
  return turn_away({'superseded', its_owner or ''})
end

-- Whether a taker that was born after us has asked already. A birth in the future is a relic of a wrong clock, and does
-- not count.
local function is_outdated()
  local its_token, _, since = newest()
  return newest_only and its_token and its_token ~= me and born < since and since <= now
end

-- Takes the place of the waiter with --latest or --replace; there is at most one.
local function supersede()
  local its_token, its_level = newest()
  if its_level == level then return end
  local w = its_token and its_token ~= me and waiter(its_token)
  if w and w.level == its_level then
    if ticket == '' then ticket = w.ticket end
    leave_queue(its_token)
    remember(its_level, 's')
    tell(its_level, 'superseded')
  end
  note('newest', string.format('%.0f %s %s %s', born, level, me, owner))
end

-- Makes holders give up the lock if they have --replace and were born before us.
local function replace_holders()
  local holder, pid, command = owner:match('^(%S*) %S* %S* (%d*)%-? (%S*)')
  local by = string.format('%s%%20pid%%20%s', holder or owner, pid or '')
  if command and command ~= '' then by = by .. '%20%22' .. command .. '%22' end
  for its_token, r in pairs(holders) do
    local since = tonumber(extra(r.tail, 'born') or nil)
    local may = is_live(r) and extra(r.tail, 'replace') and not extra(r.tail, 'evict')
    if may and since and since < born then
      evict_holder(its_token, r, 'replaced', by)
      tell_levels(r.levels, 'evicted')
    end
  end
end

-- In a quorum the waiters are ordered by how long each has waited, so that all servers agree on the order.
local function new_ticket()
  if in_quorum then return num(now_us - waited * 1000) end
  local new = num(math.max(now_us, meta_number('ticket') + 1))
  note('ticket', new)
  return new
end

local function join_queue()
  local has_none = in_quorum or ticket == '' -- in a quorum a ticket may come from another server's clock
  if has_none then ticket = new_ticket() end
  local is_there = call('ZADD', QUEUE, 'NX', ticket, me) == 0
  if has_none and is_there then -- the reply with its ticket was lost
    local w = waiter(me)
    if w then ticket = w.ticket end
  end
end

-- How many wait, if one more would be too many. A dead waiter does not count, nor does one whose place we would take.
local function crowd()
  if not wait or not max_waiting or call('ZRANK', QUEUE, me) then return nil end
  local waiting = 0
  local its_token = newest_only and newest()
  for _, other in ipairs(call('ZRANGE', QUEUE, 0, -1)) do
    if look_at(other) and other ~= its_token then waiting = waiting + 1 end
  end
  return waiting >= max_waiting and waiting or nil
end

-- Notes that the waiter is alive for a little longer than the sleep that it is told. Returns that sleep and its place.
local function sleep()
  local rank = wait and call('ZRANK', QUEUE, me) or nil
  local ms = patience(rank or 0, in_quorum and CONTEST or polls and POLL)
  if rank then
    call('HSET', WAITERS, me, string.format('%d %.0f %.0f %s %s %s %s',
      cap, now, now + ms + GRACE, ticket, level, channel(level):gsub('%s', '_'), tail))
    call('PEXPIRE', QUEUE, 2 * LONGEST)
    call('PEXPIRE', WAITERS, 2 * LONGEST)
  end
  return num(ms), num(rank and rank + 1 or 0)
end

local function first_to_leave()
  local first
  for _, r in pairs(holders) do
    if not first or until_when(r) < until_when(first) then first = r end
  end
  return first
end

local function busy()
  local ms, place = sleep()
  local waiting = num(call('ZCARD', QUEUE))
  local r = first_to_leave()
  if not r then -- in a quorum: a seat is kept for a waiter ahead of us, which has not been granted it yet
    local w = waiter(call('ZRANGE', QUEUE, 0, 0)[1] or '')
    return {'busy', ms, ticket, '0', '0', '0', w and owner_of(w.tail) or '', num(now), num(w and w.capacity or cap),
            place, waiting}
  end
  local cooling = is_live(r) and 0 or r.cools - now
  return {'busy', ms, ticket, num(math.max(0, now - r.acquired)), num(math.max(0, r.expires - now)), num(cooling),
          owner_of(r.tail), num(now), num(capacity), place, waiting}
end

local function foreign()
  local ms, place = sleep()
  local kind, value, left = foreign_key()
  return {'foreign', ms, ticket, kind, value, left, num(now), place}
end

local function take(queued)
  if queued then leave_queue(me) end
  if newest_only and how ~= 'restore' then supersede() end
  local since = how == 'restore' and born or now
  local r = grant(token, cap, lease, level, tail, has_waited and 'waited' or 'acquired', since)
  write_meta() -- first, for the reason given above
  if queued then serve_next() end
  commit()
  return {'granted', r.fence, num(r.slot), num(lease)}
end

local function wait_for_turn()
  if fits(cap) and call('ZCARD', QUEUE) == 0 then return take(false) end
  local waiting = crowd()
  if waiting and (waiting > 0 or not fits(cap)) then
    commit()
    return {'full', num(waiting)}
  end
  if wait then
    if newest_only then supersede() end
    join_queue()
  end
  local our_turn, queued = (in_quorum and walk_in_quorum or walk)(me, cap)
  if our_turn then return take(queued) end
  if wait and extra(tail, 'replace') then replace_holders() end
  local reply = ours and busy() or foreign()
  commit()
  return reply
end

-- The server's run_id, and the least time for which it has been up, in ms. The uptime of INFO is the difference of two
-- clock readings that were cut to seconds, so it may be a second too long.
local function describe_server()
  local info = call('INFO', 'server')
  local seconds = math.max(0, tonumber(info:match('uptime_in_seconds:(%d+)')) - 1)
  return info:match('run_id:(%x+)') or '', seconds * 1000
end

-- Our lease has run out, and what is left of it only cools. Whoever asks again has not used the lock yet, or is to have
-- it back, so there is nothing to cool from.
local function forget_cooling()
  remove(token)
  count_seats(capacity)
  strike(token)
end

local function answer()
  if past then return past == 's' and superseded() or {'cancelled'} end
  if is_live(mine) then return reenter(mine) end
  if how == 'reenter' then return {'lost'} end
  if mine and has_level(mine, level) then forget_cooling() end
  if how == 'restore' and fits(cap) then return take(false) end
  local success = success_for(tail)
  if success then return done(success) end
  if is_outdated() then return superseded() end
  return wait_for_turn()
end

if not in_quorum then return answer() end
local run_id, uptime = describe_server()
local reply = uptime < max_lease and {'young', num(uptime)} or answer()
if reply[1] == 'granted' or reply[1] == 'busy' then
  local success = tonumber((meta.success or ''):match('^%d+'))
  reply[#reply + 1] = success and num(math.max(0, now - success)) or '-1'
end
reply[#reply + 1] = run_id
return reply
