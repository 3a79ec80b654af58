-- log: how the last acquisitions ended. Records those that have died.
-- KEYS  lock queue waiters meta history seats
-- ARGV  count
-- ->    history now_ms, then for each hold, newest first, "hold id begun until ended end_id ender owner" as META has it
--       and for each acquisition, newest last, "fence acquired ended waited capacity end owner"; a count of 0: neither
--       (end: exit status, signal:N, released, ended, evicted,BY, replaced,BY, lost, died, timeout or interrupted)

-- NEEDS look

load_lock()
read_meta()
local reply = {'history', num(now)}
bury_dead_if_allowed()
if ARGV[1] == '0' then return reply end -- Redis does not take -0
for line in recall('holds'):gmatch('[^\n]+') do reply[#reply + 1] = 'hold ' .. line end
for _, entry in ipairs(call('LRANGE', HISTORY, -ARGV[1], -1)) do reply[#reply + 1] = entry end
for _, entry in ipairs(entries) do reply[#reply + 1] = entry end -- that could not be recorded
return reply
