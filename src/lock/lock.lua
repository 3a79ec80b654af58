-- Part of every verb: the clock, and who holds the lock.
--   KEYS      lock, queue, waiters, meta, history (renew is given the lock alone)
--   lock      field 'rlock' = capacity in force (0 shared, 1 exclusive, N slots);
--             token -> "expires cools fence slot acquired levels owner extras"
--   owner     holder host user pid command note, percent-encoded, each followed by a space but the last
--   extras    words name=value, none of which rlock 0.1.0 wrote:
--             ttl=MS       the lease that was asked for; a record that claims more than that is not believed
--             hold=MS      the minimum hold; without it a record does not cool
--             kept=1       its keeper renews and listens, so that it can be told to give up the lock
--             born=MS      when its taker began to ask
--             latest=1 replace=1 poll=1 quorum=1 once=ID per=MS    how it asked
--             settled=1    its fence is the one on which a quorum has agreed
--             ends=LEVEL:MS,...    until when each level counts on it, once there were several; '*' is for all levels
--             evict=KIND,BY   it must give up the lock, and is not renewed any more
--             end=STATUS/END  how the level that made it has ended, while others still share it
-- Times are the server's, in ms; fences and tickets are in us.
if redis.replicate_commands then redis.replicate_commands() end -- Redis 5 and 6: TIME before a write

local LOCK, QUEUE, WAITERS, META, HISTORY = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local SHORT = 5000             -- a grant lasts no longer unless it is renewed
local FOREIGN = 100            -- how often the first waiter looks at another program's lock
local LARGEST = 9007199254740992 -- the last whole number before a double skips some
local BATCH = 4000             -- words of one HSET; Lua passes fewer than 8,000 arguments

local call = redis.call
local clock = call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)

local function num(x) return string.format('%.0f', x) end -- tostring() would round to 14 digits

local holders = {}             -- token -> record that holds or cools
local expired = {}             -- token -> record that has run out; removed when the lock is written
local touched = {}             -- tokens whose records are to be written or removed
local exists = false           -- whether the lock's key exists, and is rlock's
local capacity                 -- in force; nil when nobody holds
local seats = 0                -- how many are taken, by holders and cooling records
local next_free                -- when the first of them falls free

-- The value of one of the extras after an owner's text. A percent-encoded word of the owner has no '='.
local function extra(tail, name)
  local _, at = tail:find(' ' .. name .. '=', 1, true) -- plain, since a pattern is tried at every letter
  return at and tail:match('^%S*', at + 1)
end

local function with_extra(tail, name, value)
  local word = ' ' .. name .. '=' .. value
  local changed, count = tail:gsub(' ' .. name .. '=%S*', function() return word end)
  return count > 0 and changed or tail .. word
end

local function owner_of(tail) return tail:match('^%S* %S* %S* %S* %S* %S*') or tail end

local function until_when(r) return math.max(r.expires, r.cools) end

local function is_live(r) return r and r.expires > now end

-- How the holder was made to give up the lock ('forced' or 'replaced'), and by whom; nil if nobody has.
local function eviction_of(r) return (extra(r.tail, 'evict') or ''):match('^(%a+),(.*)$') end

-- Another program's key: its type, the beginning of a string, and what is left of its life.
local function foreign_key()
  local kind = call('TYPE', LOCK).ok
  return kind, kind == 'string' and call('GETRANGE', LOCK, 0, 127) or '', num(call('PTTL', LOCK))
end

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

-- A record that we cannot read counts as a holder for as long as the key lives.
local function unreadable_record()
  local left = math.max(call('PTTL', LOCK), FOREIGN)
  return {expires = now + left, cools = 0, fence = '0', slot = 0, acquired = num(now), levels = '?',
          tail = '? ? ? 0 ? ?'}
end

local function parse_record(text)
  local expires, cools, fence, slot, acquired, levels, tail =
    text:match('^(%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
  if not expires or math.max(expires, cools, fence, slot, acquired) > LARGEST then return unreadable_record() end
  return {expires = tonumber(expires), cools = tonumber(cools), fence = fence, slot = tonumber(slot),
          acquired = acquired, levels = levels, tail = tail}
end

-- After a clock was set back nobody holds for longer than was asked for. Records of 0.1.0 do not say how long that was.
local function bound(token, r)
  local ttl = tonumber(extra(r.tail, 'ttl'))
  if not ttl then return end
  local expires, cools = r.expires, r.cools
  r.expires = math.min(expires, now + ttl)
  if cools > now then r.cools = math.min(cools, now + (tonumber(extra(r.tail, 'hold')) or 0)) end
  if r.expires < expires or r.cools < cools then touched[token] = true end
end

-- The field 'rlock' as a number; nil if the key is another program's.
local function to_capacity(field) return type(field) == 'string' and #field < 7 and tonumber(field:match('^%d+$')) end

-- Fills holders, capacity and seats. Returns false if the key belongs to another program, which then has the one seat.
local function load_lock()
  local cap = to_capacity(redis.pcall('HGET', LOCK, 'rlock'))
  if not cap then
    if call('TYPE', LOCK).ok == 'none' then return true end
    take_seat(nil, now + FOREIGN) -- nobody asks for the capacity nil, so nobody gets in
    return false
  end
  exists = true
  local fields = call('HGETALL', LOCK)
  for i = 1, #fields, 2 do
    local token = fields[i]
    if token ~= 'rlock' then
      local r = parse_record(fields[i + 1])
      bound(token, r)
      if until_when(r) > now then holders[token] = r else expired[token] = r end
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

local function format_record(r)
  return string.format('%.0f %.0f %s %d %s %s %s', r.expires, r.cools, r.fence, r.slot, r.acquired, r.levels, r.tail)
end

local function write_records()
  local fields = {'rlock', num(capacity)}
  for token in pairs(touched) do
    if holders[token] then
      fields[#fields + 1], fields[#fields + 2] = token, format_record(holders[token])
    else
      call('HDEL', LOCK, token)
    end
    if #fields == BATCH then
      call('HSET', LOCK, unpack(fields))
      fields = {}
    end
  end
  if #fields > 0 then call('HSET', LOCK, unpack(fields)) end
end

-- If the key exists its expiry is written first: a server that is out of memory allows PEXPIREAT, and every write after
-- the first that it has allowed.
local function write_lock()
  if not next(touched) then return end
  if not next(holders) then
    call('DEL', LOCK)
    return
  end
  if exists then set_expiry() end
  for token in pairs(expired) do call('HDEL', LOCK, token) end
  write_records()
  if not exists then set_expiry() end
end

-- The caller counts the seats once it has removed all that it removes.
local function remove(token) holders[token], touched[token] = nil, true end

-- Extends a lease, never shortens it, and raises the record's ttl if need be. A record of 0.1.0 stays without a ttl,
-- because levels that 0.1.0 added may have asked for more.
local function extend(token, r, ms, ttl)
  local known = tonumber(extra(r.tail, 'ttl'))
  if known and ttl > known then r.tail = with_extra(r.tail, 'ttl', num(ttl)) end
  r.expires = math.max(r.expires, now + ms)
  touched[token] = true
end

local function has_level(r, level) return (',' .. r.levels .. ','):find(',' .. level .. ',', 1, true) ~= nil end

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

-- Where several levels share a record each has an end of its own: one that was killed must not live on the renewals of
-- the others. Level '' is whoever renews by the token alone, for all.
local function note_end(r, level, till)
  local text = extra(r.tail, 'ends')
  if not (text or r.levels:find(',', 1, true)) then return end
  local ends = text or '*:' .. num(r.expires)
  local words = {}
  level = level == '' and '*' or level
  for other, ms in ends:gmatch('([^,]+):(%d+)') do
    if other == level then till = math.max(till, tonumber(ms))
    elseif other == '*' or has_level(r, other) then words[#words + 1] = other .. ':' .. ms end
  end
  words[#words + 1] = level .. ':' .. num(till)
  r.tail = with_extra(r.tail, 'ends', table.concat(words, ','))
end

-- Until when the last of its levels counts on it. A level without an end of its own counts on the whole lease.
local function last_end(r)
  local ends = {}
  for level, ms in (extra(r.tail, 'ends') or ''):gmatch('([^,]+):(%d+)') do ends[level] = tonumber(ms) end
  local last = ends['*'] or 0
  for level in r.levels:gmatch('[^,]+') do last = math.max(last, ends[level] or r.expires) end
  return math.min(last, r.expires)
end
