-- status: everything that is known of one lock. Records who has died.
-- KEYS  lock queue waiters meta history seats
-- ARGV  -
-- ->    held|cooling|free|foreign now_ms waiting(count) then one string for each fact, its kind first:
--       "capacity N"  "holder expires cools fence slot acquired levels(count) owner extras"
--       "waiter capacity since_us owner extras" (in their order, those of the first 500 that are alive)
--       "last fence acquired ended end owner" (end: as in log)
--       "success granted ended owner id"
--       "hold until begun owner" (nobody is granted the lock until then)
--       "acquired N"  "waited N"  "evicted N"  "lost N"  "failed N"  "failing N" (in a row, see failure.lua)
--       "skipped WORDS" (see skip.lua)
--       "type T"  "ttl ms"  "value V" (of a foreign key)
--       Of the extras kept=1 and born=MS are made from a record's words, if a keeper renews it and if it has waited.

-- NEEDS look levels

local SHOWN = 500
local waiting = call('ZCARD', QUEUE) -- with those that are dead
local reply = {'free', num(now), num(waiting)}
local function add(kind, text) reply[#reply + 1] = kind .. ' ' .. text end

-- The holder of a Redisson lock, "uuid:thread", is a field of its hash. Any other hash may be large: HSCAN reads only a
-- few fields.
local function redisson_holder()
  for _, field in ipairs(call('HSCAN', LOCK, 0)[2]) do
    if field:find('^%x+%-%x+%-%x+%-%x+%-%x+:%d+') then return field end
  end
end

local function add_foreign()
  local kind, value, left = foreign_key()
  if kind == 'hash' then value = redisson_holder() or '' end
  reply[1] = 'foreign'
  add('type', kind)
  add('ttl', left)
  if value ~= '' then add('value', value) end
end

local function add_holders()
  if capacity then add('capacity', num(capacity)) end
  for _, r in pairs(holders) do
    if is_live(r) then reply[1] = 'held' elseif reply[1] == 'free' then reply[1] = 'cooling' end
    local more = (has_keeper(r) and ' kept=1' or '') .. (r.waited > 0 and ' born=' .. born(r) or '')
    add('holder', r.expires .. ' ' .. r.cools .. ' ' .. r.fence .. ' ' .. r.slot .. ' ' .. r.acquired .. ' ' ..
      count_levels(r.levels) .. ' ' .. mark_departed(r, r.tail) .. more)
  end
end

-- From the newest line of the history.
local function add_last()
  local line = entries[#entries] or call('LRANGE', HISTORY, -1, -1)[1] or ''
  local times, how, owner = line:match('^(%d+ %d+ %d+) %d+ %d+ (%S+) (.*)$')
  if times then add('last', times .. ' ' .. how .. ' ' .. owner) end
end

local ours = load_lock(true)
read_meta()
bury_dead_if_allowed()
if ours then add_holders() else add_foreign() end
add_last()
if meta.success ~= '' then add('success', meta.success:match('^[^\n]*')) end
if is_on_hold() then add('hold', (meta.hold:gsub(' %S+', '', 1))) end
if meta.state ~= '' or state_changed then
  for _, name in ipairs({'acquired', 'waited', 'evicted', 'lost', 'failed'}) do add(name, counters[name]) end
  add('failing', count_failures())
  add('skipped', recall('skipped'))
end
if waiting == 0 then return reply end -- the common case, in which nothing below is needed

-- NEEDS queue
local tokens = call('ZRANGE', QUEUE, 0, SHOWN - 1)
for _, text in ipairs(call('HMGET', WAITERS, unpack(tokens))) do
  local w = text and parse_waiter(text)
  if w and w.alive < now then
    waiting = waiting - 1
  elseif w then
    local since = tonumber(w.ticket)
    if since < now_us - AHEAD / 2 then since = since + AHEAD end -- the place of one with --first
    add('waiter', num(w.capacity) .. ' ' .. num(since) .. ' ' .. w.tail)
  end
end
reply[3] = num(waiting)
return reply
