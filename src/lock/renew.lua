-- renew: extend a lease, never shorten it. Touches the lock's own key alone, so that a cluster slot in migration
-- does not break it.
-- KEYS  lock
-- ARGV  token ttl_ms
-- ->    extended lease_ms | lost
local token, ttl = ARGV[1], tonumber(ARGV[2])
local r = load_lock() and holders[token]
if not r or r.expires <= now then return {'lost'} end
r.expires = math.max(r.expires, now + ttl)
save(token, capacity)
return {'extended', num(r.expires - now)}
