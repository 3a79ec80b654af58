-- Put before every verb at build: reads the lock, decides who fits, walks the queue.
--   KEYS      lock, queue, waiters, meta (renew is given the lock alone)
--   lock      field 'rlock' = capacity in force (0 shared, 1 exclusive, N slots);
--             token -> "expires cools fence slot acquired levels owner"
--   queue     token -> ticket
--   waiters   token -> "capacity asked alive ticket level channel owner"
--   meta      floor (last fence), ticket (last given), last "acquired ended held_ms exit_status owner", ended (the
--             level that ended it), released "token:until ...", counters acquired, waited, forced
-- Times are the server's, in ms; fences and tickets are in us. A waiter's ticket tells since when it waits.
if redis.replicate_commands then redis.replicate_commands() end -- Redis 5 and 6: TIME before a write

local LOCK, QUEUE, WAITERS, META = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local CONFIRM = 1000           -- who is handed the lock has it for so long, unless it renews
local LOOK = 2000              -- the head of the queue looks at least so often, rank r every (r + 1) times that
local LONGEST = 60000          -- no waiter sleeps longer
local FOREIGN = 100            -- how often the head looks at a lock that will not tell us when it ends
local MEMORY = 2592000000      -- meta is kept 30 days

local call = redis.call
local clock = call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)

local function num(x) return string.format('%.0f', x) end -- tostring() would round to 14 digits

local holders = {}             -- token -> record
local expired = {}             -- tokens whose records have run out, removed when the next is written
local capacity                 -- in force, nil when nobody holds
local seats = 0                -- taken by holders, cooling records and claims
local next_free                -- when the first of them falls free

local function until_when(r) return math.max(r.expires, r.cools) end

local function take_seat(cap, till)
  seats, capacity = seats + 1, cap
  next_free = math.min(next_free or till, till)
end

local function count_seats(cap)
  seats, capacity, next_free = 0, nil, nil
  for _, r in pairs(holders) do take_seat(cap, until_when(r)) end
end

local function fits(cap)
  return seats == 0 or (cap == capacity and (cap == 0 or seats < cap))
end

local function parse_record(text)
  local expires, cools, fence, slot, acquired, levels, owner =
    text:match('^(%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
  return {expires = tonumber(expires), cools = tonumber(cools), fence = fence, slot = tonumber(slot),
          acquired = acquired, levels = levels, owner = owner}
end

-- Fills holders, capacity and seats. False: the key belongs to another program, and its one seat is taken.
local function load_lock()
  local kind = call('TYPE', LOCK).ok
  if kind == 'none' then return true end
  local cap = kind == 'hash' and tonumber(call('HGET', LOCK, 'rlock') or nil)
  if not cap then
    take_seat(nil, now + FOREIGN) -- nobody fits beside it
    return false
  end
  local fields = call('HGETALL', LOCK)
  for i = 1, #fields, 2 do
    if fields[i] ~= 'rlock' then
      local r = parse_record(fields[i + 1])
      if until_when(r) > now then holders[fields[i]] = r else expired[#expired + 1] = fields[i] end
    end
  end
  count_seats(cap)
  return true
end

-- The lock lives as long as its longest holder.
local function set_expiry()
  local last = 0
  for _, r in pairs(holders) do last = math.max(last, until_when(r)) end
  call('PEXPIREAT', LOCK, num(last))
end

local function write_record(token, cap)
  local r = holders[token]
  for _, gone in ipairs(expired) do call('HDEL', LOCK, gone) end -- one of them may be this token's last record
  expired = {}
  call('HSET', LOCK, 'rlock', cap, token, string.format('%.0f %.0f %s %d %s %s %s',
    r.expires, r.cools, r.fence, r.slot, r.acquired, r.levels, r.owner))
end

-- Of a lock that is held already: its expiry comes first, because PEXPIREAT passes when memory has run out, and a
-- script whose first write has passed may go on.
local function save(token, cap)
  set_expiry()
  write_record(token, cap)
end

local function remove(token)
  local cap = capacity
  holders[token] = nil
  local other = next(holders)
  if other then
    call('HDEL', LOCK, token)
    save(other, cap)
  else
    call('DEL', LOCK)
  end
  count_seats(cap)
end

local function levels_without(levels, level)
  local left = {}
  for l in levels:gmatch('[^,]+') do
    if l ~= level then left[#left + 1] = l end
  end
  return table.concat(left, ',')
end

local function count_levels(levels)
  local _, count = levels:gsub('[^,]+', '')
  return count
end

local function parse_waiter(text)
  local cap, asked, alive, ticket, level, channel, owner = text:match('^(%d+) (%d+) (%d+) (%d+) (%S+) (%S+) (.*)$')
  return cap and {capacity = tonumber(cap), asked = tonumber(asked), alive = tonumber(alive),
          ticket = ticket, level = level, channel = channel, owner = owner}
end

local function leave_queue(token)
  call('ZREM', QUEUE, token)
  call('HDEL', WAITERS, token)
end

-- Somebody subscribed to the channel? Not asked through PUBLISH, whose count includes pattern
-- subscribers. Where an ACL forbids the question the waiter is taken for alive.
local function listens(w)
  local reply = redis.pcall('PUBSUB', 'NUMSUB', w.channel)
  return reply[2] ~= 0
end

local function tell(w, text) redis.pcall('PUBLISH', w.channel, text) end

local function lowest_free_slot()
  local used, slot = {}, 0
  for _, r in pairs(holders) do used[r.slot] = true end
  while used[slot] do slot = slot + 1 end
  return slot
end

-- A new acquisition: r has its expires, cools, levels and owner.
local function grant(token, cap, r, counter)
  local floor, count = unpack(call('HMGET', META, 'floor', counter))
  r.fence = num(math.max(tonumber(floor or 0) + 1, now_us))
  r.slot = cap > 1 and lowest_free_slot() or 0
  r.acquired = num(now)
  -- An HSET comes first: it is what Redis refuses when memory has run out.
  call('HSET', META, 'floor', r.fence, counter, num(tonumber(count or 0) + 1))
  call('PEXPIRE', META, MEMORY)
  holders[token] = r
  write_record(token, cap)
  set_expiry()
  take_seat(cap, until_when(r))
end

-- Gives a waiter the lock before it asks again, and returns what to tell it: how long after its last question that
-- happened. From the time at which it sent that, it knows what is left of the lease without asking.
local function hand_over(token, w)
  local r = {expires = now + CONFIRM, cools = now, levels = w.level, owner = w.owner}
  leave_queue(token)
  grant(token, w.capacity, r, 'waited')
  return string.format('granted %s %d %d %.0f %.0f', r.fence, r.slot, CONFIRM, w.asked, now - w.asked)
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

-- Walks the queue from its head: hands the lock to each waiter that fits, drops the dead and stops at the first
-- that does not fit, telling it when the next seat falls free, if it is new there or the seats have changed.
-- Returns whether the turn of `me`, wanting `cap`, has come, and whether anybody is queued.
local function walk(me, cap, seats_changed)
  local first
  local is_news = seats_changed
  local new_holders, texts = {}, {}
  for token in heads() do
    first = token
    if token == me then break end
    local text = call('HGET', WAITERS, token)
    local w = text and parse_waiter(text)
    if not w or w.alive < now or not listens(w) then
      leave_queue(token)
    elseif fits(w.capacity) then
      new_holders[#new_holders + 1], texts[#texts + 1] = w, hand_over(token, w)
    else
      if is_news then tell(w, num(math.max(1, math.min(next_free - now + 1, LOOK)))) end
      break
    end
    first, is_news = nil, true
  end
  -- Redis writes last what was published first: nobody else's message comes before the new holders'.
  for i, holder in ipairs(new_holders) do tell(holder, texts[i]) end
  return me ~= nil and (not first or first == me) and fits(cap), first ~= nil
end

-- Lets go on whoever can, now that the lock has changed.
local function serve_next() walk(nil, nil, true) end

-- How long a waiter may sleep: until a seat is free, later the further back it stands.
local function patience(rank)
  local free = next_free or now
  return math.max(1, math.min(free - now + 1 + rank * CONFIRM, LOOK * (rank + 1), LONGEST))
end
