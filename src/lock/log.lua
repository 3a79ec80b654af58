-- log: how the last acquisitions ended. Records those that have died.
-- WITH  lock memory history
-- KEYS  lock queue waiters meta history
-- ARGV  count
-- ->    history now_ms, then for each, newest last, "fence acquired ended waited mode end owner"
--       (end: exit status, signal:N, released, evicted,BY, replaced,BY, lost, died or timeout)
load_lock()
read_meta()
local reply = {'history', num(now)}
bury_dead_if_allowed()
if ARGV[1] == '0' then return reply end -- Redis does not take -0
for _, entry in ipairs(call('LRANGE', HISTORY, -ARGV[1], -1)) do reply[#reply + 1] = entry end
for _, entry in ipairs(entries) do reply[#reply + 1] = entry end -- that could not be recorded
return reply
