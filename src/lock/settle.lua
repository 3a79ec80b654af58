-- settle: in a quorum, where the token still holds, raise its fence, and the floor, to the largest that a majority
-- granted. Two majorities share a server, so the next holder's fence is larger than this.
-- KEYS  lock queue waiters meta
-- ARGV  token fence
-- ->    settled | lost
local token, fence = ARGV[1], ARGV[2]
local r = load_lock() and holders[token]
if not r or r.expires <= now then return {'lost'} end
local floor = tonumber(call('HGET', META, 'floor') or 0)
call('HSET', META, 'floor', num(math.max(floor, tonumber(fence))))
call('PEXPIRE', META, MEMORY)
r.fence = fence
save(token, capacity)
return {'settled'}
