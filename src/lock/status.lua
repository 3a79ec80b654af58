-- status: everything that is known of one lock. Records who has died.
-- WITH  lock memory history
-- KEYS  lock queue waiters meta history
-- ARGV  -
-- ->    held|cooling|free|foreign now_ms waiting(count) then one string for each fact, its kind first:
--       "capacity N"  "holder expires cools fence slot acquired levels(count) owner extras"
--       "waiter capacity ticket owner extras" (in their order, the first 500)
--       "last acquired ended held_ms end owner" (end: exit status, or how it ended)
--       "success granted ended owner id"
--       "acquired N"  "waited N"  "forced N"  "lost N"  "type T"  "ttl ms"  "value V" (of a foreign key)
local SHOWN = 500
local waiting = call('ZCARD', QUEUE)
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
    add('holder', string.format('%.0f %.0f %s %d %s %d %s',
      r.expires, r.cools, r.fence, r.slot, r.acquired, count_levels(r.levels), r.tail))
  end
end

if load_lock() then add_holders() else add_foreign() end
read_meta()
bury_dead_if_allowed()
local last = meta.last or call('HGET', META, 'last')
if last then add('last', last) end
if meta.success then add('success', meta.success:match('^[^\n]*')) end
for _, name in ipairs({'acquired', 'waited', 'forced', 'lost'}) do
  if meta[name] then add(name, meta[name]) end
end
if waiting == 0 then return reply end -- the common case, in which nothing below is needed

-- WITH  grant queue
for _, token in ipairs(call('ZRANGE', QUEUE, 0, SHOWN - 1)) do
  local w = waiter(token)
  if w then add('waiter', string.format('%d %s %s', w.capacity, w.ticket, w.tail)) end
end
return reply
