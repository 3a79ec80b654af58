-- Part of the verbs that write what a holder has.
--   record    "expires cools ttl hold fence slot acquired waited kept levels owner extras"
--             expires  the end of the lease
--             cools    until when the seat stays taken, if the run ends before; 0 if it has no minimum hold
--                      (in a record of a lock that cools after a failure: the end of that, and hold its length)
--             ttl hold the lease and the minimum hold that were asked for: a record that claims more is not believed
--             waited   for how long its taker had asked when it was granted
--             kept     1 if a keeper renews it and listens, so that it can be told to give up the lock, else 0
--             levels   LEVEL, or LEVEL:MS,... once there were several, each with the time until when it counts on it;
--                      `ended` in a record of a lock that cools after a failure
--   owner     holder host user pid command note, percent-encoded, each followed by a space but the last
--   extras    words name=value, each after a space; most records have none:
--             latest=1 replace=1 first=1 poll=1 quorum=1 once=ID per=MS    how it asked
--             backoff=MS-MS   for how long the lock cools after a failure, first and at most; attempts=N
--             failed=N,END    it cools after that many failures in a row, of which this is the last
--             bar=MS min=MS   if it failed: until when nobody is granted the lock, and the end of its minimum hold
--             settled=1       its fence is the one on which a quorum has agreed
--             evict=KIND,BY   it must give up the lock, and is not renewed any more
--             end=STATUS/END  how the level that made it has ended, while others still share it; a slash after it
--                             excuses that
local function format_record(r)
  return r.expires .. ' ' .. r.cools .. ' ' .. r.ttl .. ' ' .. r.hold .. ' ' .. r.fence .. ' ' .. r.slot .. ' ' ..
    r.acquired .. ' ' .. r.waited .. ' ' .. r.kept .. ' ' .. r.levels .. ' ' .. r.tail
end

local function parse_record(text)
  local expires, cools, ttl, hold, fence, slot, acquired, waited, kept, levels, tail =
    text:match('^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ([01]) (%S+) (.*)$')
  if not expires or math.max(expires, cools, ttl, hold, fence, slot, acquired, waited) > LARGEST then return nil end
  return {expires = tonumber(expires), cools = tonumber(cools), ttl = tonumber(ttl), hold = tonumber(hold),
          fence = fence, slot = tonumber(slot), acquired = tonumber(acquired), waited = tonumber(waited), kept = kept,
          levels = levels, tail = tail, is_unreadable = false}
end

-- After a clock was set back nobody holds for longer than was asked for. Returns whether that has changed the record.
local function bound(r)
  local is_too_long = r.expires > now + r.ttl
  if is_too_long then r.expires = now + r.ttl end
  if r.cools <= now + r.hold then return is_too_long end
  r.cools = now + r.hold
  return true
end

local function is_live(r) return r and r.expires > now end

-- The answer about the lock as a hash; nil if it is none. Any other error is not swallowed: if we may not ask, the lock
-- is not therefore another program's.
local function ask_hash(command, ...)
  local reply = redis.pcall(command, LOCK, ...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  return not reply.err:find('WRONGTYPE', 1, true) and call(command, LOCK, ...) or nil
end

-- The lock's fields and their values, none if there is no lock, nil if they are many or no hash. Unlike HGETALL this
-- question may be asked of any key, and of a crowd.
local function few_fields()
  local scan = ask_hash('HSCAN', 0)
  return scan and scan[1] == '0' and scan[2] or nil
end
