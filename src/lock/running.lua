-- Part of the verbs by which acquisitions begin and end: those in progress. What the lock's record says is repeated in
-- META, so that the end of an acquisition can be told even if its record has expired.
--   running   newest first, a line "token capacity fence acquired waited lasts owner extras" for each; lasts: the end
--             of a lease that nobody renews, else 0. One that is listed but no longer holds has ended unreported.
local function format_line(token, cap, r)
  local lasts = r.kept == '1' and 0 or r.acquired + r.ttl
  return token .. ' ' .. cap .. ' ' .. r.fence .. ' ' .. r.acquired .. ' ' .. r.waited .. ' ' .. lasts .. ' ' .. r.tail
end
