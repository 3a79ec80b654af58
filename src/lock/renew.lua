-- renew: extend a lease, never shorten it. It touches only the lock's own key, so that it works even while a cluster
-- slot is being migrated.
-- WITH  lock
-- KEYS  lock
-- ARGV  token ttl_ms level('' if only the token is known)
-- ->    extended lease_ms known(1: the record has that level, else 0) | evicted kind by | lost
local token, ttl, level = ARGV[1], tonumber(ARGV[2]), ARGV[3]

-- Only this holder's record is read and written: a lock may have thousands of holders, each of which renews.
local function load_record()
  local fields = redis.pcall('HMGET', LOCK, 'rlock', token)
  local text = to_capacity(fields[1]) and fields[2]
  if not text then return nil end
  local r = parse_record(text)
  bound(token, r)
  return r
end

-- The expiry is written first, even if it stays, for the reason given at write_lock.
local function write_record(r, left)
  call('PEXPIRE', LOCK, num(math.max(left, until_when(r) - now)))
  call('HSET', LOCK, token, format_record(r))
end

local r, left = load_record(), call('PTTL', LOCK)
-- After the clock was set back every record is to be bounded, and the lock's expiry; a lock that somebody has robbed of
-- its expiry gets the longest.
local needs_all = r and (touched[token] or left < 0)
if needs_all then
  load_lock()
  r = holders[token]
end
if not is_live(r) then return {'lost'} end
local kind, by = eviction_of(r)
if kind then return {'evicted', kind, by} end
extend(token, r, ttl, ttl)
note_end(r, level, now + ttl)
if needs_all then write_lock() else write_record(r, left) end
return {'extended', num(r.expires - now), (level == '' or has_level(r, level)) and '1' or '0'}
