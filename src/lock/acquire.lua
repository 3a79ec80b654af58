-- acquire: take the lock, join its queue, or learn who holds it. It may be repeated: a level counts only once.
-- KEYS  lock queue waiters meta history seats level_end token_end
-- ARGV  token level capacity ttl_ms how ticket('' the first time) waited_ms owner max_lease_ms(0: not in a quorum),
--       then any of hold=MS kept=1 poll=1 latest=1 replace=1 first=1 once=ID per=MS max-waiting=N
--       backoff=MS-MS attempts=N
--       (an ID with a colon is a slot of the calendar: day:2026-11-22)
--       waiter=ID (in a quorum, where each question has a token of its own: identifies the waiter)
--       how   once: take it or learn who holds it; queue: take it or join the queue; reenter: only if the token holds;
--             restore: past any queue and for the whole lease, on a server that has lost what most others still have;
--             waited_ms is the age of the acquisition then
-- ->    granted fence slot lease_ms          (a new grant lasts 5 s at most, until its first renewal;
--                                             fence 0: re-entry before the quorum's fence has been settled here)
--       lost                                 (reenter: this token does not hold; restore: there is no room for it)
--       upgrade capacity                     (reenter: the token holds in a mode that does not allow this one)
--       once id                              (reenter: the token holds for another ID)
--       evicted kind by                      (reenter: the token must give up the lock)
--       busy sleep_ms ticket held_ms lease_ms cooling_ms owner now_ms capacity place waiting
--                                            (after the owner, N,END if it cools after N failures)
--       hold sleep_ms ticket until_ms owner now_ms place      (nobody is granted the lock until then, see hold.lua)
--       foreign sleep_ms ticket type value ttl_ms now_ms place     (another program's key)
--       full waiting                         (max-waiting)
--       done granted_ms ended_ms now_ms owner id                   (once, per: that success counts for this one too)
--       attempts count end acquired_ms ended_ms now_ms host        (attempts: that many have failed in a row)
--       superseded owner                     (latest, replace: by a newer waiter)
--       cancelled                            (this level was cancelled or released before)
--       young uptime_ms                      (up for less than max_lease: the server may have forgotten a lock)
--       In a quorum `granted`, `busy` and `hold` are followed by how many ms ago the last run was granted that ended
--       with 0 (-1: none is known), and each answer ends with the server's run_id.

-- NEEDS clock record memory running

local token, level, cap, ttl = ARGV[1], ARGV[2], tonumber(ARGV[3]), duration(ARGV[4])
local how, ticket, waited, owner = ARGV[5], ARGV[6], duration(ARGV[7]), ARGV[8]
local max_lease = tonumber(ARGV[9])
local wait, has_waited, in_quorum = how == 'queue', ticket ~= '', max_lease > 0
local lease = how == 'restore' and ttl or math.min(ttl, SHORT)
local me = token               -- our name in the queue
local max_waiting

-- What we ask for, as a waiter keeps it.
local function read_claim()
  local EXTRAS = {poll = true, latest = true, replace = true, first = true, once = true, per = true,
                  backoff = true, attempts = true}
  local claim = {capacity = cap, level = level, ttl = ttl, hold = 0, born = now - waited, kept = '0', tail = owner}
  for i = 10, #ARGV do
    local name, value = ARGV[i]:match('^([%a-]+)=(%S*)$')
    if name == 'kept' then claim.kept = '1'
    elseif name == 'hold' then claim.hold = duration(value)
    elseif name == 'max-waiting' then max_waiting = tonumber(value)
    elseif name == 'waiter' then me = value
    elseif EXTRAS[name] then claim.tail = claim.tail .. ' ' .. ARGV[i]
    else error('unknown option ' .. ARGV[i]) end
  end
  if in_quorum then claim.tail = claim.tail .. ' poll=1 quorum=1' end
  return claim
end

-- Takes a lock that is free, for which nobody waits, not even we, and whose last holder has not died.
local function take_plainly(claim)
  local hold = claim.hold
  local r = {expires = now + lease, cools = hold > 0 and now + hold or 0, ttl = ttl, hold = hold, fence = next_fence(),
             slot = 0, acquired = now, waited = waited, kept = claim.kept, levels = level, tail = claim.tail}
  count(has_waited and 'waited' or 'acquired')
  note('running', format_line(token, cap, r))
  write_meta() -- first: a server that is out of memory refuses it, and then nothing has been written
  call('HSET', LOCK, 'rlock', cap, token, format_record(r))
  call('PEXPIREAT', LOCK, math.max(r.expires, r.cools))
  return {'granted', r.fence, '0', lease .. ''}
end

local claim = read_claim()
if claim.tail == owner and how ~= 'reenter' and how ~= 'restore' and not (wait and has_waited) and
  call('EXISTS', LOCK, QUEUE, LEVEL_END, TOKEN_END) == 0 then
  read_meta()
  if meta.running == '' and can_grant() and not is_on_hold() then return take_plainly(claim) end
end

-- NEEDS queue skip
local newest_only = extra(claim.tail, 'latest') or extra(claim.tail, 'replace')
local is_first = extra(claim.tail, 'first') ~= nil
local ours = load_lock(extra(claim.tail, 'replace'))
read_meta()
local mine = holder(token)

local function reenter(r)
  if r.is_unreadable then return unreadable() end
  local kind, by = eviction_of(r)
  if kind then return {'evicted', kind, by} end
  if capacity ~= 1 and capacity ~= cap then return {'upgrade', num(capacity)} end
  local once, theirs = extra(claim.tail, 'once'), extra(r.tail, 'once')
  if once and theirs and once ~= theirs then return {'once', theirs} end
  if not has_level(r, level) then add_level(r, level) end
  if claim.hold > 0 then
    r.hold = math.max(r.hold, claim.hold)
    r.cools = math.max(r.cools, claim.born + claim.hold)
  end
  extend(token, r, lease, ttl)
  note_end(r, level, math.min(r.expires, now + ttl))
  commit()
  local is_own = in_quorum and how == 'reenter' and not extra(r.tail, 'settled') -- not the fence that the token has
  return {'granted', is_own and '0' or r.fence, num(r.slot), num(r.expires - now)}
end

-- Leaves the queue for good, with that reply.
local function turn_away(reply)
  count_skip(reply[1], owner)
  leave_queue(me)
  serve_next()
  commit()
  return reply
end

-- dismiss_done tells only so many waiters at a time, and the last of them comes here: it goes on with those behind it.
local function done(success)
  local granted, ended, by, id = success:match('^(%d+) (%d+) (.*) (%S*)$')
  local rank = call('ZRANK', QUEUE, me)
  if rank then dismiss_done(rank + 1) end
  return turn_away({'done', granted, ended, num(now), by, id})
end

-- The last taker that asked with --latest or --replace: its token, level, birth and owner.
local function newest()
  local since, its_level, its_token, its_owner = recall('newest'):match('^(%d+) (%S+) (%S+) (.*)$')
  return its_token, its_level, tonumber(since), its_owner
end

local function superseded()
  local _, _, _, its_owner = newest()
  return turn_away({'superseded', its_owner or ''})
end

local function was_superseded()
  local lines = recall('superseded')
  local at = lines:find(level .. ' ', 1, true)
  return at and tonumber(lines:match('^%d+', at + #level + 1)) > now
end

local function remember_superseded(its_level)
  local lines, kept = its_level .. ' ' .. now + ENDED_FOR, 1
  for other, till in recall('superseded'):gmatch('(%S+) (%d+)') do
    kept = kept + 1
    if kept <= 64 and tonumber(till) > now then lines = lines .. ' ' .. other .. ' ' .. till end
  end
  note('superseded', lines)
end

-- Whether a taker that was born after us has asked already. A birth in the future is a relic of a wrong clock, and does
-- not count; nor does an earlier claim of our own, whose question was on its way for longer and so seems younger.
local function is_outdated()
  local its_token, _, since, its_owner = newest()
  return its_token and its_token ~= me and its_owner ~= owner and claim.born < since and since <= now
end

-- Takes the place of the waiter with --latest or --replace; there is at most one.
local function supersede()
  local its_token, its_level = newest()
  if its_level == level then return end
  local w = its_token and its_token ~= me and waiter(its_token)
  if w and w.level == its_level then
    if ticket == '' and (not is_first or extra(w.tail, 'first')) then ticket = w.ticket end
    leave_queue(its_token)
    remember_superseded(its_level)
    tell(its_level, 'superseded')
  end
  note('newest', claim.born .. ' ' .. level .. ' ' .. me .. ' ' .. owner)
end

-- Makes holders give up the lock if they have --replace and were not born after us: of the holders of slots one, which
-- was granted its slot first, and no second one while that has not ended.
local function replace_holders()
  local name, pid, command = owner:match('^(%S*) %S* %S* (%d*)[-+]? (%S*)')
  local by = (name or owner) .. '%20pid%20' .. (pid or '')
  if command and command ~= '' then by = by .. '%20%22' .. command .. '%22' end
  local chosen = {}
  for its_token, r in pairs(holders) do
    local goes = is_live(r) and extra(r.tail, 'evict')
    if goes and cap == capacity then return end
    if is_live(r) and not goes and extra(r.tail, 'replace') and born(r) <= claim.born then
      chosen[#chosen + 1] = {token = its_token, record = r}
    end
  end
  table.sort(chosen, function(a, b) return tonumber(a.record.fence) < tonumber(b.record.fence) end)
  for i, one in ipairs(chosen) do
    if i > 1 and cap == capacity then break end
    evict_holder(one.token, one.record, 'replaced', by)
    tell_levels(one.record.levels, 'evicted')
  end
end

local join_queue

do
  -- In a quorum the waiters are ordered by how long each has waited, so that all servers agree on the order.
  local function new_ticket()
    local ahead = is_first and AHEAD or 0
    if in_quorum then return num(math.max(0, now_us - waited * 1000 - ahead)) end
    local new = math.max(now_us, (tonumber(recall('ticket')) or 0) + 1)
    note('ticket', num(new))
    return num(math.max(0, new - ahead))
  end

  function join_queue()
    local has_none = in_quorum or ticket == '' -- in a quorum a ticket may come from another server's clock
    if has_none then ticket = new_ticket() end
    local is_there = call('ZADD', QUEUE, 'NX', ticket, me) == 0
    if has_none and is_there then -- the reply with its ticket was lost
      local w = waiter(me)
      if w then ticket = w.ticket end
    end
  end
end

-- How many wait, if one more would be too many. One that has waited already keeps its place, and one that supersedes
-- another takes over its place. Dead waiters are looked for, and removed, only if they matter; in a long queue each
-- taker looks at another part of it. If more are dead than one call may remove, the rest still counts.
local function fullness()
  local MOST_COUNTED = 200
  if not wait or not max_waiting or has_waited or call('ZRANK', QUEUE, me) then return nil end
  local its_token = newest_only and newest()
  local replaced = its_token and call('ZRANK', QUEUE, its_token) and 1 or 0
  local room = max_waiting + replaced
  local queued = call('ZCARD', QUEUE)
  if queued >= room then
    local alive = 0
    local start = room > MOST_COUNTED and now_us % (queued - MOST_COUNTED + 1) or 0
    for _, other, w in heads(MOST_COUNTED, start) do
      if alive >= room then break end
      if needs_lock(other, w) then alive = alive + 1 end
      if #leavers == MOST_DISMISSED then break end
    end
    let_leave()
  end
  local waiting = call('ZCARD', QUEUE) - replaced
  return waiting >= max_waiting and waiting or nil
end

local busy, held_back, foreign

do
  local POLL = 100   -- the first that may not listen asks that often, with LOOK as the longest pause
  local CONTEST = 20 -- the same in a quorum, where only asking wins: the first must ask far more often

  -- Notes that the waiter is alive for a little longer than the sleep that it is told. Returns the sleep and the place.
  local function sleep()
    local rank = wait and call('ZRANK', QUEUE, me) or nil
    local ms = patience(rank or 0, in_quorum and CONTEST or extra(claim.tail, 'poll') and POLL)
    if rank and rank > 0 and fits(cap) then ms = math.min(ms, LOOK * (rank + 1)) end -- whoever is ahead may be dead
    if rank then
      call('HSET', WAITERS, me, cap .. ' ' .. now .. ' ' .. now + ms + GRACE .. ' ' .. ticket .. ' ' .. level .. ' ' ..
        ttl .. ' ' .. claim.hold .. ' ' .. claim.born .. ' ' .. claim.kept .. ' ' .. claim.tail)
      if rank == 0 then -- it asks every two seconds, and if it dies the next one becomes the first
        call('PEXPIRE', QUEUE, 2 * LONGEST)
        call('PEXPIRE', WAITERS, 2 * LONGEST)
        if is_old then keep_meta() end
      end
    end
    return num(ms), num(rank and rank + 1 or 0)
  end

  local function first_to_leave()
    local first
    for _, r in pairs(holders) do
      if barred and bar_of(r) == barred then return r end
      if not first or until_when(r) < until_when(first) then first = r end
    end
    return first
  end

  function busy()
    local ms, place = sleep()
    local waiting = num(call('ZCARD', QUEUE))
    local r = first_to_leave()
    if not r then -- in a quorum: a seat is kept for a waiter ahead of us, which has not been granted it yet
      local w = waiter(call('ZRANGE', QUEUE, 0, 0)[1] or '')
      return {'busy', ms, ticket, '0', '0', '0', w and owner_of(w.tail) or '', num(now),
              num(capacity or w and w.capacity or cap),
              place, waiting}
    end
    local cooling = is_live(r) and 0 or r.cools - now
    local failed = bar_of(r) and extra(r.tail, 'failed')
    return {'busy', ms, ticket, num(math.max(0, now - r.acquired)), num(math.max(0, r.expires - now)), num(cooling),
            mark_departed(r, owner_of(r.tail)) .. (failed and ' ' .. failed or ''), num(now), num(capacity), place,
            waiting}
  end

  function held_back()
    local till, its_owner = meta.hold:match('^(%d+) %S+ %d+ (.*)$')
    local ms, place = sleep()
    return {'hold', ms, ticket, till, its_owner, num(now), place}
  end

  function foreign()
    local ms, place = sleep()
    local kind, value, left = foreign_key()
    return {'foreign', ms, ticket, kind, value, left, num(now), place}
  end
end

local function take(queued)
  if queued then leave_queue(me) end
  if newest_only and how ~= 'restore' then supersede() end
  local since = how == 'restore' and claim.born or now
  local r = grant(token, claim, lease, has_waited and 'waited' or 'acquired', since)
  write_meta() -- first, for the reason given above
  if queued then serve_next() end
  commit()
  return {'granted', r.fence, num(r.slot), num(lease)}
end

-- The queue was lost, or the lock has moved to another server: those that listen here are told to ask for their places.
local function wake_the_forgotten()
  local pattern = channel(''):gsub('[%[%]*?\\]', '\\%0')
  local channels = redis.pcall('PUBSUB', 'CHANNELS', pattern .. '*')
  for i = 1, math.min(#channels, MOST_SERVED) do redis.pcall('PUBLISH', channels[i], '1') end
end

local function wait_for_turn()
  if wait and has_waited and not in_quorum and call('EXISTS', QUEUE) == 0 then wake_the_forgotten() end
  if fits(cap) and call('ZCARD', QUEUE) == 0 then return take(false) end
  local waiting = fullness()
  if waiting and (waiting > 0 or not fits(cap)) then
    count_skip('full', owner)
    commit()
    return {'full', num(waiting)}
  end
  if wait then
    if newest_only then supersede() end
    join_queue()
  end
  local our_turn, queued = (in_quorum and walk_in_quorum or walk)(me, cap)
  if our_turn then return take(queued) end
  if wait and extra(claim.tail, 'replace') and not is_on_hold() then replace_holders() end
  local reply = is_on_hold() and held_back() or ours and busy() or foreign()
  if not wait then
    local is_cooling = reply[1] == 'busy' and reply[6] ~= '0'
    count_skip('held', owner, reply[1] == 'hold' and 'on_hold' or is_cooling and 'cooling')
  end
  commit()
  return reply
end

-- The server's run_id, and for how long it has been up at least, in ms. The uptime of INFO is the difference of two
-- clock readings that were cut to seconds, so it may be a second too long.
local function describe_server()
  local info = call('INFO', 'server')
  local seconds = math.max(0, tonumber(info:match('uptime_in_seconds:(%d+)')) - 1)
  return info:match('run_id:(%x+)') or '', seconds * 1000
end

-- Our lease has run out, and what is left of it only cools. Whoever asks again has not used the lock yet, or is to have
-- it back, so there is nothing to cool from.
local function forget_cooling()
  if extra(mine.tail, 'failed') then forget_failure(mine.fence) end -- it was taken for dead
  remove(token)
  strike(token)
end

local function answer()
  if newest_only and was_superseded() then return superseded() end
  if call('EXISTS', LEVEL_END, TOKEN_END) > 0 then
    return {how == 'reenter' and call('EXISTS', LEVEL_END) == 0 and 'lost' or 'cancelled'}
  end
  if is_live(mine) then return reenter(mine) end
  if how == 'reenter' then return {'lost'} end
  if not can_grant() then return no_fence() end
  if mine and (has_level(mine, level) or mine.levels == 'ended' or how == 'restore') then forget_cooling() end
  if how == 'restore' then
    disown(token)   -- it was taken for dead here
    leave_queue(me) -- a question that was late has made it wait here, for what it has got from the other servers
    return has_room(cap) and take(false) or {'lost'}
  end
  -- First what has died: it may have failed, or have said that it ended well while a run inside it went on.
  local running = meta.running
  if running:find(' backoff=', 1, true) or running:find(' end=', 1, true) or extra(claim.tail, 'attempts') then
    disown(token) -- a grant that it never heard of was no attempt
    bury_dead()
  end
  local success = success_for(claim.tail, claim.born)
  if success then return done(success) end
  local attempts, last = exhausted(claim.tail)
  if attempts then
    return turn_away({'attempts', num(attempts), last.word, last.acquired, num(last.ended), num(now), last.host})
  end
  if newest_only and is_outdated() then return superseded() end
  return wait_for_turn()
end

local function answer_in_quorum()
  local run_id, uptime = describe_server()
  local reply = uptime < max_lease and {'young', num(uptime)} or answer()
  if reply[1] == 'granted' or reply[1] == 'busy' or reply[1] == 'hold' then
    local success = tonumber(meta.success:match('^%d+'))
    reply[#reply + 1] = success and num(math.max(0, now - success)) or '-1'
  end
  reply[#reply + 1] = run_id
  return reply
end

if in_quorum then return answer_in_quorum() end
return answer()
