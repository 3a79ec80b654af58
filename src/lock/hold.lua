-- hold: puts the lock on hold until a time, so that nobody is granted it, or with `end` ends the hold. What runs goes
-- on, and so do renewals and nested runs. A repetition with the same id gets the same answer.
-- KEYS  lock queue waiters meta history seats mark
-- ARGV  id how(until|for|least|end) ms(a time, or from now on) owner
--       least: as for, but a hold that there is and that lasts longer stays
-- ->    held until_ms now_ms, and if that replaces another hold, until_ms owner of that one
--       kept until_ms owner   (least: the one that lasts longer)
--       ended until_ms owner
--       none                  (end: the lock is not on hold)
--       past now_ms           (until: a time that has passed)
-- The mark is a hash that exists while the lock is on hold: SCAN finds it where nobody holds the lock.

-- NEEDS queue

local KEPT = 16                -- how many holds are remembered
local LONGEST_HOLD = 91 * 86400000 -- a day more than clients allow: their clocks may differ from ours

local MARK = KEYS[7]
local id, how, ms, owner = ARGV[1], ARGV[2], math.floor(math.max(0, tonumber(ARGV[3]))), ARGV[4]

-- The holds so far, newest first.
local function read_holds()
  local holds = {}
  for line in recall('holds'):gmatch('[^\n]+') do
    local its_id, begun, till, ended, end_id, ender, rest = line:match('^(%S+) (%d+) (%d+) (%d+) (%S+) (%S*) (.*)$')
    if its_id then
      holds[#holds + 1] = {id = its_id, begun = begun, till = till, ended = ended, end_id = end_id, ender = ender,
                           owner = rest}
    end
  end
  return holds
end

local function write_holds(holds)
  local lines = {}
  for i = 1, math.min(#holds, KEPT) do
    local h = holds[i]
    lines[i] = table.concat({h.id, h.begun, h.till, h.ended, h.end_id, h.ender, h.owner}, ' ')
  end
  note('holds', table.concat(lines, '\n'))
end

load_lock()
read_meta()
local holds = read_holds()

-- Ends the present hold, if there is one.
local function close()
  if not is_on_hold() then return end
  if holds[1] then holds[1].ended, holds[1].end_id, holds[1].ender = now, id, owner:match('^%S*') end
  note('hold', '')
  call('DEL', MARK) -- first: a server that is out of memory allows it, and then every write after it
end

local function open(till)
  close()
  table.insert(holds, 1, {id = id, begun = now, till = till, ended = 0, end_id = '-', ender = '-', owner = owner})
  note('hold', till .. ' ' .. id .. ' ' .. now .. ' ' .. owner)
  is_old = true -- META must outlive the hold
end

-- Tells those behind the first how long to sleep now that the lock may be free sooner than they know. The walk has told
-- only the first, which may be dead when its time has come.
local function tell_those_behind()
  for rank, _, w in heads(MOST_SERVED, 1) do
    if w then tell(w.level, patience(rank - 1)) end
  end
end

-- The waiters are granted the lock, or told until when to sleep.
local function finish()
  write_holds(holds)
  write_meta()
  serve_next()
  tell_those_behind()
  commit()
end

-- The answer to whoever has ended a hold, however often it asks; nil if it has ended none.
local function ended()
  for _, h in ipairs(holds) do
    if h.end_id == id then return {'ended', h.till .. '', h.owner} end
  end
end

if how == 'end' then
  if is_on_hold() and not ended() then
    close()
    finish()
  end
  return ended() or {'none'}
end

local at = 1                   -- our own hold's place; a repetition may come when others have followed it
while holds[at] and holds[at].id ~= id do at = at + 1 end
if not holds[at] then
  local till = how == 'until' and ms or now + ms
  if till <= now then return {'past', num(now)} end
  if how == 'least' and held_back_until() > till then
    return {'kept', meta.hold:match('^(%d+) %S+ %d+ (.*)$')}
  end
  open(math.min(till, now + LONGEST_HOLD))
  finish()
  call('HSET', MARK, 'until', holds[1].till)
  call('PEXPIREAT', MARK, holds[1].till)
  at = 1
end
local reply, before = {'held', holds[at].till .. '', num(now)}, holds[at + 1]
if before and before.end_id == id then reply[4], reply[5] = before.till .. '', before.owner end
return reply
