-- renew: extend a lease, never shorten it. It touches only the lock's own key, so that it works even while a cluster
-- slot is being migrated.
-- WITH  lock
-- KEYS  lock
-- ARGV  token ttl_ms level('' if only the token is known)
-- ->    extended lease_ms known(1: the record has that level, else 0) | evicted kind by | lost
local token, ttl, level = ARGV[1], tonumber(ARGV[2]), ARGV[3]
load_lock()
local r = holders[token]
if not is_live(r) then return {'lost'} end
local kind, by = eviction_of(r)
if kind then return {'evicted', kind, by} end
extend(token, r, ttl, ttl)
note_end(r, level, now + ttl)
write_lock()
return {'extended', num(r.expires - now), (level == '' or has_level(r, level)) and '1' or '0'}
