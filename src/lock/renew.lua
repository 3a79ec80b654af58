-- renew: extend a lease, never shorten it. It touches only the lock's own key, so that it works even while a cluster
-- slot is being migrated.
-- KEYS  lock
-- ARGV  token ttl_ms level('' if only the token is known)
-- ->    extended lease_ms known(1: the record has that level, else 0) | evicted kind by | lost

-- NEEDS lock levels

local token, ttl, level = ARGV[1], duration(ARGV[2]), ARGV[3]

-- Only this holder's record is read and written: a lock may have thousands of holders, each of which renews.
local seen

local function load_own()
  local fields = redis.pcall('HMGET', LOCK, 'rlock', token, 'seen')
  seen = tonumber(fields[3] or '')
  return to_capacity(fields[1]) and fields[2] and load_record(fields[2])
end

-- The expiry is written first, even if it stays, for the reason given at write_lock.
local function write_record(r, left)
  call('PEXPIRE', LOCK, math.max(left, until_when(r) - now))
  local record = format_record(r)
  if seen then
    call('HSET', LOCK, token, record, 'seen', math.max(seen, now))
  else
    call('HSET', LOCK, token, record)
  end
end

local r, left = load_own(), call('PTTL', LOCK)
-- After the clock was set back every record is to be bounded, and the lock's expiry; a lock whose expiry somebody has
-- removed gets the longest.
local needs_all = r and (bound(r) or left < 0)
if needs_all then
  load_lock(true)
  r = holders[token]
end
if not is_live(r) then return {'lost'} end
if r.is_unreadable then return unreadable() end
local kind, by = eviction_of(r)
if kind then return {'evicted', kind, by} end
extend(token, r, ttl, ttl)
note_end(r, level, now + ttl)
-- Nobody else renews what a plain acquire took, so the runs inside it do, until it has been released.
if level ~= '' and r.kept == '0' and not extra(r.tail, 'end') then
  local maker = r.levels:match('^[^,]+'):gsub(':%d+$', '')
  note_end(r, maker, now + ttl)
end
if needs_all then write_lock() else write_record(r, left) end
return {'extended', num(r.expires - now), (level == '' or has_level(r, level)) and '1' or '0'}
