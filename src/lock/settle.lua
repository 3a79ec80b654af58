-- settle: in a quorum, if the token still holds, give it the largest fence that a majority granted, and raise the floor
-- to it. Two majorities share a server, so the next holder's fence is larger. A settled fence is never lowered.
-- KEYS  lock queue waiters meta history seats
-- ARGV  token fence waiter('' if none; it leaves the queue, also of a server that did not grant it the lock)
--       new(1: nobody has been told this fence yet, so another may be chosen; 2: the same, after a wait; else 0)
-- ->    settled | lost
--       used floor   (another reader, of a majority that overlaps with ours, may have this fence)

-- NEEDS queue

local token, fence = ARGV[1], tonumber(ARGV[2])
if (ARGV[3] or '') ~= '' then leave_queue(ARGV[3]) end
load_lock()
read_meta()
local r = holder(token)
if not is_live(r) then return {'lost'} end
if r.is_unreadable then return unreadable() end
local counter = ARGV[4] == '1' and 'acquired' or ARGV[4] == '2' and 'waited'
if counter and tonumber(r.fence) ~= fence and floor >= fence then return {'used', num(floor)} end
if counter and not extra(r.tail, 'settled') then count(counter) end
raise_floor(fence)
r.fence = num(extra(r.tail, 'settled') and math.max(r.fence, fence) or fence)
r.tail, touched[token] = with_extra(r.tail, 'settled', '1'), true
strike(token)
start_line(token, r, capacity)
write_meta()
write_lock()
return {'settled'}
