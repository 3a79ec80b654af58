-- settle: in a quorum, where the token still holds, give it the largest fence that a majority granted, and raise the
-- floor to that. Two majorities share a server, so the next holder's fence is larger than this. A fence that is settled
-- is never lowered.
-- WITH  lock memory history grant queue
-- KEYS  lock queue waiters meta history
-- ARGV  token fence waiter('' where none: it waits no more, here neither where it was not granted the lock)
--       new(1: nobody has been told this fence yet, so another may be chosen)
-- ->    settled | lost
--       used floor   (another reader, of a majority that overlaps with ours, may have this fence)
local token, fence = ARGV[1], tonumber(ARGV[2])
if (ARGV[3] or '') ~= '' then leave_queue(ARGV[3]) end
load_lock()
read_meta()
local r = holders[token]
if not is_live(r) then return {'lost'} end
local is_chosen_here = tonumber(r.fence) == fence or extra(r.tail, 'settled')
if ARGV[4] == '1' and not is_chosen_here and meta_number('floor') >= fence then return {'used', meta.floor} end
note('floor', num(math.max(meta_number('floor'), fence)))
r.fence = num(extra(r.tail, 'settled') and math.max(r.fence, fence) or fence)
r.tail, touched[token] = with_extra(r.tail, 'settled', '1'), true
write_meta()
write_lock()
return {'settled'}
