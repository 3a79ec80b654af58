-- Part of the verbs that change who waits: the queue, and those who are given the lock.
--   queue     token -> ticket: since when it waits
--   waiters   token -> "capacity asked alive ticket level channel owner extras"
-- A level listens on a channel of its own. 0.1.0 reads its name from the waiter's text; we make it from the level,
-- since the name of a lock may have spaces.
local UNCONFIRMED = 1000       -- for so long a waiter of 0.1.0 is handed the lock
local GRACE = 1000             -- a waiter is alive for so long after its sleep
local LOOK = 2000              -- the head of the queue looks at least so often, rank r every (r + 1) times that
local POLL = 100               -- the same for those who listen to nothing
local CONTEST = 20             -- and for those who need most of several servers: the first comes far more often
local LONGEST = 60000          -- no waiter sleeps longer
local QUORUM_VIEW = 100        -- of a queue on one server of several, so many are looked at

local outbox = {}              -- who was given the lock, and what it is told

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

-- Somebody subscribed to its channel? Not asked through PUBLISH, whose count includes pattern subscribers. Where an ACL
-- forbids the question the waiter is taken for alive. Who may not listen is alive for as long as it said, which a clock
-- that was set back must not make longer.
local function is_alive(w)
  if w.alive < now then return false end
  if extra(w.tail, 'poll') then return w.alive <= now + LONGEST + GRACE end
  local reply = redis.pcall('PUBSUB', 'NUMSUB', channel(w.level))
  return reply[2] ~= 0
end

-- Gives a waiter the lock before it asks again, and tells it how long after its last question that happened: from the
-- time at which it sent that, it knows what is left of the lease. That it knows its token and the fence proves that the
-- message is ours.
local function hand_over(token, w)
  leave_queue(token)
  local ttl = tonumber(extra(w.tail, 'ttl'))
  local lease = ttl and math.min(ttl, SHORT) or UNCONFIRMED
  local r = grant(token, w.capacity, lease, w.level, w.tail, 'waited')
  outbox[#outbox + 1] = {w.level, string.format('granted %s %d %.0f %.0f %.0f %s', r.fence, r.slot, lease, w.asked,
    math.max(0, now - w.asked), redis.sha1hex(token .. ':' .. r.fence))}
end

-- Iterates over the queue for one who takes out whom he has looked at. Mostly two are enough: who is served, and who is
-- next.
local function heads()
  local tokens, i = call('ZRANGE', QUEUE, 0, 1), 0
  return function()
    i = i + 1
    if i > 2 then tokens, i = call('ZRANGE', QUEUE, 0, 1), 1 end
    return tokens[i]
  end
end

-- Takes out of the queue who has no business there any more. Returns who is left.
local function look_at(token)
  local w = waiter(token)
  if w and is_alive(w) then
    if not success_for(w.tail) then return w end
    tell(w.level, 'done')
  end
  leave_queue(token)
end

-- Walks the queue from its head: hands the lock to each waiter that fits, drops the dead and stops at the first
-- that does not fit, telling it when the next seat falls free, if it is new there or the seats have changed.
-- Returns whether the turn of `me`, wanting `cap`, has come, and whether anybody is queued.
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

-- On one server of several nobody is handed anything, but whoever stands ahead and fits keeps a seat.
local function walk_in_quorum(me, cap)
  for _, token in ipairs(call('ZRANGE', QUEUE, 0, QUORUM_VIEW - 1)) do
    if token == me then break end
    local w = look_at(token)
    if w and not fits(w.capacity) then return false, true end
    if w then take_seat(w.capacity, now + GRACE) end
  end
  return fits(cap), true
end

-- Lets go on whoever can, now that the lock has changed.
local function serve_next() walk(nil, nil, true) end

-- How long a waiter may sleep: until a seat is free, later the further back it stands.
local function patience(rank, poll)
  if poll then return math.min(poll * (rank + 1), LOOK) end
  local free = next_free or now
  return math.max(1, math.min(free - now + 1 + rank * GRACE, LOOK * (rank + 1), LONGEST))
end

-- Redis writes last what was published first: nobody else's message comes before the new holders'.
local function commit()
  write_all()
  for _, message in ipairs(outbox) do tell(message[1], message[2]) end
end
