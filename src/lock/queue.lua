-- Part of the verbs that change who waits: the queue, and handing the lock to waiters.
-- NEEDS grant levels
--   queue     token -> ticket, by which the queue is ordered: a time in us, with --first an AHEAD before it
--   waiters   token -> "capacity asked alive ticket level ttl hold born kept owner extras"
-- A level listens on a channel of its own.
local AHEAD = 1000000000000000 -- 31 years in us
local GRACE = 1000             -- how long after its sleep a waiter still counts as alive
local LOOK = 2000              -- the first waiter asks at least this often, one far back at rank r every (r + 1) * LOOK
local LONGEST = 60000          -- no waiter sleeps longer
local MOST_SERVED = 32         -- how many waiters one call hands the lock to
local MOST_DISMISSED = 100     -- how many it looks at to tell them that their work is done

local outbox = {}              -- pairs of a level that was handed the lock, and its message
local leavers = {}             -- tokens that are to leave the queue
local herald                   -- the one that dismiss_done has told to carry the news on, and that stays until it asks;
                               -- '' if one has left that may have had to do so
local is_cut = false           -- whether so many were dead that the walk ended before it came to one that is alive

local function channel(level) return QUEUE:sub(1, -#'queue' - 1) .. 'wake:' .. level end

local function tell(level, text) redis.pcall('PUBLISH', channel(level), text) end

local function tell_levels(levels, text)
  for level in each_level(levels) do tell(level, text) end
end

local function parse_waiter(text)
  local cap, asked, alive, ticket, level, ttl, hold, since, kept, tail =
    text:match('^(%d+) (%d+) (%d+) (%d+) (%S+) (%d+) (%d+) (%d+) ([01]) (.*)$')
  return cap and {capacity = tonumber(cap), asked = tonumber(asked), alive = tonumber(alive), ticket = ticket,
                  level = level, ttl = tonumber(ttl), hold = tonumber(hold), born = tonumber(since), kept = kept,
                  tail = tail}
end

local function waiter(token)
  local text = call('HGET', WAITERS, token)
  return text and parse_waiter(text)
end

local function leave_queue(...)
  call('ZREM', QUEUE, ...)
  call('HDEL', WAITERS, ...)
end

-- Gives a waiter the lock before it asks again, and tells it how long after its last question that happened: it knows
-- when it sent that question, and so what is left of the lease. The digest of its token and the fence proves that the
-- message is ours.
local function hand_over(token, w)
  local lease = math.min(w.ttl, SHORT)
  local r = grant(token, w, lease, 'waited')
  outbox[#outbox + 1] = {w.level, 'granted ' .. r.fence .. ' ' .. r.slot .. ' ' .. lease .. ' ' .. w.asked .. ' ' ..
    math.max(0, now - w.asked) .. ' ' .. redis.sha1hex(token .. ':' .. r.fence)}
end

local function let_leave()
  if #leavers > 0 then leave_queue(unpack(leavers)) end
  leavers = {}
end

local heads, needs_lock

do
  -- Finds out how many are subscribed to the waiters' channels. PUBLISH would not tell, since its count includes
  -- pattern subscribers. If an ACL forbids the question it stays unknown.
  local function count_listeners(waiters)
    local channels = {}
    for i, w in ipairs(waiters) do channels[i] = channel(w.level) end
    local reply = #channels > 0 and redis.pcall('PUBSUB', 'NUMSUB', unpack(channels)) or {}
    for i, w in ipairs(waiters) do w.listeners = reply[2 * i] end
  end

  -- Iterates over the queue from its head, or from a later rank, so many at most. It reads two at first: usually those
  -- are the waiter that is served and the next one. Yields the rank, the token, and the waiter (nil if its record
  -- cannot be read).
  function heads(most, start)
    local from, size, tokens, waiters, i = start or 0, 2, {}, nil, 0
    most = most + from

    local function read_more()
      tokens, waiters, i = call('ZRANGE', QUEUE, from, from + size - 1), {}, 0
      local readable = {}
      for k, text in ipairs(#tokens > 0 and call('HMGET', WAITERS, unpack(tokens)) or {}) do
        waiters[k] = text and parse_waiter(text)
        readable[#readable + 1] = waiters[k] or nil
      end
      count_listeners(readable)
      from = from + #tokens
      size = math.min(4 * size, 100, most - from)
    end

    return function()
      if i == #tokens and size > 0 then read_more() end
      if i == #tokens then return nil end
      i = i + 1
      return from - #tokens + i, tokens[i], waiters[i]
    end
  end

  -- Whether a waiter is alive: somebody listens for it. One that may not listen is alive until the time that was noted
  -- for it, unless that is too far away because the clock was set back.
  local function is_alive(w)
    if w.alive < now then return false end
    if extra(w.tail, 'poll') then return w.alive <= now + LONGEST + GRACE end
    return w.listeners ~= 0
  end

  -- Whether a waiter is alive and still needs the lock. Any other is to leave. One that seems dead may listen at
  -- another node of a Cluster: it is told to ask, and finds its place by its ticket.
  function needs_lock(token, w)
    if w and is_alive(w) then
      if not success_for(w.tail, w.born) and not exhausted(w.tail) then return true end
      if token == herald then return false end
      herald = herald or ''
      tell(w.level, 'done')
    elseif w then
      tell(w.level, '1')
    end
    leavers[#leavers + 1] = token
    return false
  end
end

-- When the first in the queue may get the lock at the earliest.
local function next_chance() return math.max(next_free(), held_back_until()) end

-- Tells the waiters from that rank on whose work a success has made unnecessary, and removes them. If there may be more
-- than it looks at, the last of them stays and is told to ask: it does the same for those behind it.
local function dismiss_done(from)
  local tokens = call('ZRANGE', QUEUE, from, from + MOST_DISMISSED - 1)
  if #tokens == 0 then return end
  local texts, last, its_level = call('HMGET', WAITERS, unpack(tokens)), nil, nil
  for i, token in ipairs(tokens) do
    local w = texts[i] and texts[i]:find('=', 1, true) and parse_waiter(texts[i])
    if w and success_for(w.tail, w.born) then
      if last then
        leavers[#leavers + 1] = last
        tell(its_level, 'done')
      end
      last, its_level = token, w.level
    end
  end
  if not last then return end
  if #tokens < MOST_DISMISSED then leavers[#leavers + 1] = last else herald = last end
  tell(its_level, 'done')
  let_leave()
end

-- Walks the queue from its head: hands the lock to each waiter that fits, drops the dead and stops at the first that
-- does not fit. That one is told when the next seat falls free, if it has just become the first or the seats have
-- changed. No call serves more than MOST_SERVED: the next one is told to ask at once, and serves those behind it.
-- Returns whether it is the turn of `me`, which wants `cap`, and whether anybody is queued.
local function walk(me, cap, seats_changed)
  local MOST_SEEN = 150 -- waiters that it looks at
  if meta.running:find('=', 1, true) then bury_dead() end -- some deaths matter to waiters, as with --backoff
  local first
  local is_news, served, seen = seats_changed, 0, 0
  for rank, token, w in heads(MOST_SEEN) do
    first, seen = token, rank
    if token == me then break end
    if needs_lock(token, w) then
      if served == MOST_SERVED then
        tell(w.level, '1')
        break
      elseif not fits(w.capacity) or not can_grant() or extra(w.tail, 'quorum') then
        if is_news then tell(w.level, math.max(1, math.min(next_chance() - now + 1, LOOK))) end
        break
      end
      hand_over(token, w)
      served, leavers[#leavers + 1] = served + 1, token
    end
    first, is_news = nil, true
  end
  let_leave()
  if herald == '' then dismiss_done(0) end
  is_cut = seen == MOST_SEEN and not first
  if is_cut then first = call('ZRANGE', QUEUE, 0, 0)[1] end
  return me ~= nil and (not first or first == me) and fits(cap), first ~= nil
end

-- In a quorum no single server hands over the lock, but each waiter ahead of `me` that fits keeps a seat.
local function walk_in_quorum(me, cap)
  local QUORUM_VIEW = 100 -- how many waiters a server of a quorum looks at
  local is_turn = true
  local real_seats, real_capacity = seats, capacity
  for _, token, w in heads(QUORUM_VIEW) do
    if token == me then break end
    if needs_lock(token, w) then
      is_turn = fits(w.capacity)
      if not is_turn then break end
      seats, capacity, reserved_until = seats + 1, w.capacity, now + GRACE
    end
  end
  let_leave()
  is_turn = is_turn and fits(cap)
  seats, capacity = real_seats, real_capacity
  return is_turn, true
end

-- Hands the lock to the waiters that fit now that it has changed.
local function serve_next() walk(nil, nil, true) end

-- How long a waiter may sleep: until a seat falls free, if it stands close to the head, so that the first that is alive
-- has the lock soon, whoever died ahead of it; else the longer the further back it stands.
local function patience(rank, poll)
  local CLOSE = 64 -- waiters up to this rank ask when the lease ends of which they know
  local STEP = 20 -- each of those that much later than the one before it
  if poll then return math.min(poll * (rank + 1), LOOK) end
  if is_cut then return 1 end
  local is_close = (capacity or is_on_hold()) and rank <= CLOSE
  local pause = next_chance() - now + 1 + rank * (is_close and STEP or GRACE)
  return math.max(1, math.min(pause, is_close and rank > 0 and LONGEST or LOOK * (rank + 1), LONGEST))
end

-- Redis sends first what was published last, so the new holders, which are told last, hear of it before anybody else.
local function commit()
  write_all()
  for _, message in ipairs(outbox) do tell(message[1], message[2]) end
end
