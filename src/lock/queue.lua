-- Part of the verbs that change who waits: the queue, and handing the lock to waiters.
--   queue     token -> ticket, by which the queue is ordered
--   waiters   token -> "capacity asked alive ticket level channel owner extras"
-- A level listens on a channel of its own. 0.1.0 reads the channel's name from the waiter's text; we make it from the
-- level, since the name of a lock may have spaces.
local UNCONFIRMED = 1000       -- the lease with which a waiter of 0.1.0 is handed the lock
local GRACE = 1000             -- how long after its sleep a waiter still counts as alive
local LOOK = 2000              -- the first waiter asks at least this often, the one at rank r every (r + 1) * LOOK
local POLL = 100               -- the same for waiters that may not listen, with LOOK as the longest pause
local CONTEST = 20             -- the same in a quorum, where only asking wins: the first must ask far more often
local LONGEST = 60000          -- no waiter sleeps longer
local QUORUM_VIEW = 100        -- how many waiters a server of a quorum looks at

local outbox = {}              -- pairs of a level that was handed the lock, and its message

local function channel(level) return QUEUE:sub(1, -#'queue' - 1) .. 'wake:' .. level end

local function tell(level, text) redis.pcall('PUBLISH', channel(level), text) end

local function tell_levels(levels, text)
  for level in levels:gmatch('[^,]+') do tell(level, text) end
end

local function parse_waiter(text)
  local cap, asked, alive, ticket, level, at = text:match('^(%d+) (%d+) (%d+) (%d+) (%S+) ()')
  if not cap then return nil end
  local past = at + #channel(level)
  if text:sub(past, past) ~= ' ' then return nil end
  return {capacity = tonumber(cap), asked = tonumber(asked), alive = tonumber(alive), ticket = ticket, level = level,
          tail = text:sub(past + 1)}
end

local function waiter(token)
  local text = call('HGET', WAITERS, token)
  return text and parse_waiter(text)
end

local function leave_queue(token)
  call('ZREM', QUEUE, token)
  call('HDEL', WAITERS, token)
end

-- Whether a waiter is alive: somebody is subscribed to its channel. PUBLISH would not tell, since its count includes
-- pattern subscribers. If an ACL forbids the question the waiter counts as alive. One that may not listen is alive
-- until the time that was noted for it, unless that is too far away because the clock was set back.
local function is_alive(w)
  if w.alive < now then return false end
  if extra(w.tail, 'poll') then return w.alive <= now + LONGEST + GRACE end
  local reply = redis.pcall('PUBSUB', 'NUMSUB', channel(w.level))
  return reply[2] ~= 0
end

-- Gives a waiter the lock before it asks again, and tells it how long after its last question that happened: it knows
-- when it sent that question, and so what is left of the lease. The digest of its token and the fence proves that the
-- message is ours.
local function hand_over(token, w)
  leave_queue(token)
  local ttl = tonumber(extra(w.tail, 'ttl'))
  local lease = ttl and math.min(ttl, SHORT) or UNCONFIRMED
  local r = grant(token, w.capacity, lease, w.level, w.tail, 'waited')
  outbox[#outbox + 1] = {w.level, string.format('granted %s %d %.0f %.0f %.0f %s', r.fence, r.slot, lease, w.asked,
    math.max(0, now - w.asked), redis.sha1hex(token .. ':' .. r.fence))}
end

-- Iterates over the queue for a caller that removes each waiter that it was given. It reads two at a time: mostly those
-- are the waiter that is served and the next one.
local function heads()
  local tokens, i = call('ZRANGE', QUEUE, 0, 1), 0
  return function()
    i = i + 1
    if i > 2 then tokens, i = call('ZRANGE', QUEUE, 0, 1), 1 end
    return tokens[i]
  end
end

-- Returns a waiter that is alive and still needs the lock; removes any other from the queue.
local function look_at(token)
  local w = waiter(token)
  if w and is_alive(w) then
    if not success_for(w.tail) then return w end
    tell(w.level, 'done')
  end
  leave_queue(token)
end

-- Walks the queue from its head: hands the lock to each waiter that fits, drops the dead and stops at the first that
-- does not fit. That one is told when the next seat falls free, if it has just become the first or the seats have
-- changed. Returns whether it is the turn of `me`, which wants `cap`, and whether anybody is queued.
local function walk(me, cap, seats_changed)
  local first
  local is_news = seats_changed
  for token in heads() do
    first = token
    if token == me then break end
    local w = look_at(token)
    if w and (not fits(w.capacity) or extra(w.tail, 'quorum')) then
      if is_news then tell(w.level, num(math.max(1, math.min((next_free or now) - now + 1, LOOK)))) end
      break
    end
    if w then hand_over(token, w) end
    first, is_news = nil, true
  end
  return me ~= nil and (not first or first == me) and fits(cap), first ~= nil
end

-- In a quorum no single server hands over the lock, but each waiter ahead of `me` that fits keeps a seat.
local function walk_in_quorum(me, cap)
  for _, token in ipairs(call('ZRANGE', QUEUE, 0, QUORUM_VIEW - 1)) do
    if token == me then break end
    local w = look_at(token)
    if w and not fits(w.capacity) then return false, true end
    if w then take_seat(w.capacity, now + GRACE) end
  end
  return fits(cap), true
end

-- Hands the lock to the waiters that fit now that it has changed.
local function serve_next() walk(nil, nil, true) end

-- How long a waiter may sleep: until a seat falls free, and the longer the further back it stands.
local function patience(rank, poll)
  if poll then return math.min(poll * (rank + 1), LOOK) end
  local free = next_free or now
  return math.max(1, math.min(free - now + 1 + rank * GRACE, LOOK * (rank + 1), LONGEST))
end

-- Redis sends first what was published last, so the new holders, which are told last, hear of it before anybody else.
local function commit()
  write_all()
  for _, message in ipairs(outbox) do tell(message[1], message[2]) end
end
