-- log: how the last acquisitions ended. Reads only.
-- WITH  lock memory history
-- KEYS  lock queue waiters meta history
-- ARGV  count
-- ->    history now_ms, then for each, newest last, "fence acquired ended waited mode end owner"
--       (end: exit status, signal:N, released, evicted,BY, replaced,BY, lost, died or timeout)
load_lock()
read_meta()
local reply = {'history', num(now)}
if ARGV[1] ~= '0' then -- Redis does not take -0
  for _, entry in ipairs(call('LRANGE', HISTORY, -ARGV[1], -1)) do reply[#reply + 1] = entry end
end
for _, run in ipairs(dead_runs()) do reply[#reply + 1] = format_entry(run, run.ended, run.how) end
return reply
