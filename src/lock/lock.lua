-- Part of most verbs: who holds the lock.
-- NEEDS clock record
--   lock      field 'rlock' = capacity in force (0 shared, 1 exclusive, N slots); token -> record
-- A crowd, which is a shared or slotted lock with many holders, has more, so that few have to read all its records:
--   seats     token -> a time before which its seat does not fall free. It lags behind the lease, since a renewal
--             touches the lock's own key alone.
--   lock      field 'seen' = a time after which no record was written, and 'slots' = a digit for each slot, 1 if it is
--             taken. If 'seen' is yet to come the clock was set back, and all records are to be bounded.
-- Where any of that is missing or wrong it is made anew, as it is for a lock that has just become a crowd. While it
-- cools after a failure all of that is missing, so that no script overlooks the record of that one.
local FOREIGN = 100            -- how often the first waiter looks at another program's lock

local holders = {}             -- token -> record that holds or cools, of those that were read
local expired = {}             -- token -> record that has run out; removed when the lock is written
local touched = {}             -- tokens whose records are to be written or removed
local capacity                 -- in force; nil when nobody holds
local seats = 0                -- how many are taken, by holders and cooling records
local barred                   -- until when nobody is granted the lock, after a failure with --backoff
local reserved_until           -- until when one is kept for somebody who has no record
local lags = {}                -- pairs of a time and a token, for seats that lag behind

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

local function born(r) return r.acquired - r.waited end

-- How the holder was made to give up the lock ('forced' or 'replaced'), and by whom; nil if nobody has.
local function eviction_of(r) return (extra(r.tail, 'evict') or ''):match('^(%a+),(.*)$') end

-- Another program's key: its type, the beginning of a string, and what is left of its life.
local function foreign_key()
  local kind = call('TYPE', LOCK).ok
  return kind, kind == 'string' and call('GETRANGE', LOCK, 0, 127) or '', num(call('PTTL', LOCK))
end

-- Whether there is a seat for one more in that mode.
local function has_room(cap)
  return seats == 0 or (cap == capacity and (cap == 0 or seats < cap))
end

-- The field 'rlock' as a number; nil if the key is another program's.
local function to_capacity(field) return type(field) == 'string' and #field < 7 and tonumber(field:match('^%d+$')) end

local function unreadable() return redis.error_reply('RLOCK ' .. LOCK .. ' is held by another version of rlock') end

local load_record

do
  -- A record that we cannot read counts as a holder for as long as the key lives. It is never written.
  local function unreadable_record()
    local left = math.max(call('PTTL', LOCK), FOREIGN)
    return {expires = now + left, cools = 0, ttl = left, hold = 0, fence = '0', slot = 0, acquired = now, waited = 0,
            kept = '0', levels = '?', tail = 'another%20version%20of%20rlock   0-  ', is_unreadable = true}
  end

  -- A crowd of holders is looked at for its ends alone: the other words of a record are read only when they are needed.
  local lazily = {__index = function(r, name)
    local whole = parse_record(rawget(r, 'text')) or unreadable_record()
    for key, value in pairs(whole) do
      if rawget(r, key) == nil then rawset(r, key, value) end
    end
    return rawget(whole, name)
  end}

  function load_record(text)
    local expires, cools, ttl, hold = text:match('^(%d+) (%d+) (%d+) (%d+) %d+ %d+ %d+ %d+ [01] %S+ ')
    if not expires then return unreadable_record() end
    local r = {expires = tonumber(expires), cools = tonumber(cools), ttl = tonumber(ttl), hold = tonumber(hold),
               text = text}
    if math.max(r.expires, r.cools, r.ttl, r.hold) > LARGEST then return unreadable_record() end
    return setmetatable(r, lazily)
  end
end

-- Until when nobody is granted the lock because this one has failed; nil if it bars nobody. Its minimum hold may be
-- longer.
local function bar_of(r)
  if r.expires > now or not extra(r.tail, 'failed') then return nil end
  local bar = math.min(r.cools, tonumber(extra(r.tail, 'bar') or r.cools))
  return bar > now and bar or nil
end

-- Whether the lock cools after a failure, and until when.
local function find_bar()
  barred = nil
  for _, r in pairs(holders) do
    local bar = bar_of(r)
    if bar then barred = math.max(barred or 0, bar) end
  end
end

local take_seat, take_slot, remove, read_records, holder, load_lock, next_free, write_lock

do
  local BATCH = 4000             -- words of one command; Lua passes fewer than 8,000 arguments
  local SMALL = 16               -- a lock with more holders is a crowd
  local MOST_READ = 1000         -- how many holders of a crowd one call looks at
  local MOST_SLOTS = 1000000
  local SEATS_LIFE = 86400000    -- a day, after which they are made anew

  local exists = false           -- whether the lock's key exists, and is rlock's
  local is_whole = true          -- whether all records were read
  local has_seats = false        -- whether it is a crowd, whose seats can be believed
  local had_seats = false        -- whether it was one before
  local is_anew = false          -- whether it was granted when nobody held it any more
  local slots                    -- as the field has them; nil until somebody needs them
  local unread_until             -- a time before which nobody falls free whose record was not read
  local life                     -- of a crowd's key: the time that is left, in ms

  function take_seat(cap)
    is_anew = is_anew or seats == 0
    seats, capacity = seats + 1, cap
  end

  local function mark_slot(slot, digit)
    if slot >= MOST_SLOTS then return end
    slots = slots .. ('0'):rep(slot - #slots)
    slots = slots:sub(1, slot) .. digit .. slots:sub(slot + 2)
  end

  local function read_slots()
    if slots then return end
    local taken, last, digits = {}, -1, {}
    for _, r in pairs(holders) do
      taken[r.slot] = true
      if r.slot < MOST_SLOTS then last = math.max(last, r.slot) end
    end
    for slot = 0, last do digits[slot + 1] = taken[slot] and '1' or '0' end
    slots = table.concat(digits)
  end

  function take_slot()
    read_slots()
    local slot = (slots:find('0', 1, true) or #slots + 1) - 1
    mark_slot(slot, '1')
    return slot
  end

  local function leave_seat(r)
    if slots and capacity > 1 then mark_slot(r.slot, '0') end
    seats = seats - 1
    if seats == 0 then capacity, slots = nil, nil end -- readers all have slot 0
  end

  -- Removes somebody who holds the lock.
  function remove(token)
    local r = holders[token]
    leave_seat(r)
    holders[token], touched[token] = nil, true
    if barred and bar_of(r) == barred then find_bar() end
  end

  local function sort_in(token, text)
    local r = load_record(text)
    if bound(r) then touched[token] = true end
    if until_when(r) > now then
      holders[token] = r
    else
      expired[token] = r
      leave_seat(r)
    end
  end

  -- Reads the records of these tokens, unless they were read or changed.
  function read_records(tokens)
    local unread = {}
    for _, token in ipairs(is_whole and {} or tokens) do
      if not (holders[token] or expired[token] or touched[token]) then unread[#unread + 1] = token end
    end
    local texts = #unread > 0 and call('HMGET', LOCK, unpack(unread)) or {}
    for i, token in ipairs(unread) do
      if texts[i] then sort_in(token, texts[i]) end
    end
  end

  -- The record of a token that holds or cools.
  function holder(token)
    read_records({token})
    return holders[token]
  end

  local function read_all(fields)
    local texts = {}
    holders, expired, touched, lags = {}, {}, {}, {}
    seats, slots, unread_until = 0, nil, nil
    for i = 1, #fields, 2 do
      if fields[i] == 'seen' then
        had_seats = true
      elseif fields[i] ~= 'rlock' and fields[i] ~= 'slots' then
        texts[fields[i]], seats = fields[i + 1], seats + 1
      end
    end
    for token, text in pairs(texts) do sort_in(token, text) end
  end

  local function value_of(fields, name)
    for i = 1, #fields, 2 do
      if fields[i] == name then return fields[i + 1] end
    end
  end

  -- Whether it is a crowd whose seats can be believed, as far as that can be told at a glance.
  local function count_seats()
    local size = capacity == 1 and 0 or SEATS and call('HLEN', LOCK) or 0
    if size <= SMALL then return false end
    local fields = call('HMGET', LOCK, 'seen', 'slots')
    local seen = tonumber(fields[1] or '')
    seats, slots, life = size - 3, fields[2], call('PTTL', LOCK)
    return seen and seen <= now and slots and life >= 0 and call('ZCARD', SEATS) == seats
  end

  -- Reads the records of a crowd from the first that may fall free, until it is certain which one does, and notes which
  -- seats lag behind. Returns false if there is a seat that nobody has.
  local function read_first()
    local from, size, first = 0, 1, math.huge
    repeat
      local entries, tokens = call('ZRANGE', SEATS, from, from + size - 1, 'WITHSCORES'), {}
      for i = 1, #entries, 2 do tokens[#tokens + 1] = entries[i] end
      read_records(tokens)
      for i, token in ipairs(tokens) do
        local r = holders[token]
        if not r and not expired[token] then return false end
        unread_until = tonumber(entries[2 * i])
        local till = r and until_when(r) or unread_until
        if till ~= unread_until then lags[#lags + 1], lags[#lags + 2] = till, token end
        if r then first = math.min(first, till) end
      end
      local is_end = #tokens < size
      if is_end then unread_until = nil end
      from, size = from + #tokens, math.min(10 * size, MOST_READ - from - #tokens)
    until is_end or first <= unread_until or size == 0
    return true
  end

  -- Finds out the capacity, how many seats are taken and who leaves first; with needs_all, reads all records. Returns
  -- false if the key belongs to another program, which then has the one seat.
  function load_lock(needs_all)
    local fields = few_fields()
    if fields and #fields == 0 then return true end
    local cap = to_capacity(fields and value_of(fields, 'rlock') or ask_hash('HGET', 'rlock'))
    if not cap then
      seats, reserved_until = 1, now + FOREIGN -- nobody asks for the capacity nil, so nobody gets in
      return false
    end
    exists, capacity = true, cap
    has_seats = not (fields and #fields <= 2 * SMALL) and count_seats()
    is_whole = false
    if needs_all or not has_seats or not read_first() then
      has_seats = needs_all and has_seats
      read_all(fields or call('HGETALL', LOCK))
      is_whole = true
    end
    if seats == 0 then capacity = nil end
    find_bar()
    return true
  end

  -- When the first seat falls free, or a time before which none does.
  function next_free()
    if barred then return barred end
    local first = math.min(unread_until or math.huge, reserved_until or math.huge)
    for _, r in pairs(holders) do first = math.min(first, until_when(r)) end
    return first < math.huge and first or now
  end

  -- The lock lives as long as its longest holder; a crowd that was not read as a whole keeps at least the life that it
  -- had.
  local function set_expiry()
    local last = is_whole and 0 or now + life
    for _, r in pairs(holders) do last = math.max(last, until_when(r)) end
    call('PEXPIREAT', LOCK, last)
  end

  local function call_in_batches(command, key, words)
    for i = 1, #words, BATCH do call(command, key, unpack(words, i, math.min(#words, i + BATCH - 1))) end
  end

  local function write_records(is_crowd)
    local fields, gone = {'rlock', capacity}, {}
    if is_crowd then
      read_slots()
      fields = {'rlock', capacity, 'seen', now, 'slots', slots}
    elseif (had_seats or has_seats) and SEATS then
      gone = {'seen', 'slots'}
      call('DEL', SEATS)
    end
    for token in pairs(touched) do
      local r = holders[token]
      if not r then
        gone[#gone + 1] = token
      elseif not r.is_unreadable then
        fields[#fields + 1], fields[#fields + 2] = token, format_record(r)
      end
    end
    if exists then call_in_batches('HDEL', LOCK, gone) end
    call_in_batches('HSET', LOCK, fields)
    if has_seats and is_crowd then call_in_batches('ZREM', SEATS, gone) end
  end

  local function write_seats()
    local entries = {}
    for token in pairs(has_seats and touched or holders) do
      local r = holders[token]
      if r then entries[#entries + 1], entries[#entries + 2] = until_when(r), token end
    end
    if not has_seats then call('DEL', SEATS) end
    call_in_batches('ZADD', SEATS, entries)
    if not has_seats then call('PEXPIRE', SEATS, SEATS_LIFE) end
  end

  local function lacks_seats() return SEATS and not (has_seats or barred) and capacity ~= 1 and seats > SMALL end

  -- If the key exists its expiry is written first: a server that is out of memory allows PEXPIREAT, and every write
  -- after the first that it has allowed.
  function write_lock()
    if #lags > 0 then redis.pcall('ZADD', SEATS, unpack(lags)) end -- if that is refused they go on lagging
    if not next(touched) and not lacks_seats() then return end
    if exists and (is_anew or seats == 0) then
      call('DEL', LOCK)
      if has_seats or had_seats then call('DEL', SEATS) end
      exists, is_whole, has_seats, had_seats = false, true, false, false
    end
    if seats == 0 then return end
    local is_crowd = has_seats and not barred or lacks_seats()
    if exists then set_expiry() end
    write_records(is_crowd)
    if is_crowd then write_seats() end
    if not exists then set_expiry() end
  end
end

-- Extends a lease, never shortens it, and raises the record's ttl if need be.
local function extend(token, r, ms, ttl)
  r.ttl = math.max(r.ttl, ttl)
  r.expires = math.max(r.expires, now + ms)
  touched[token] = true
end
