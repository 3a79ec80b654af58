-- status: every fact known of one lock. Reads only.
-- KEYS  lock queue waiters meta
-- ARGV  -
-- ->    held|cooling|free|foreign now_ms waiting(count) then one string for each fact, its kind first:
--       "capacity N"  "holder expires cools fence slot acquired levels(count) owner"
--       "waiter capacity ticket owner" (in their order, the first 500)  "last acquired ended held_ms exit_status owner"
--       "acquired N"  "waited N"  "forced N"  "type T"  "ttl ms"  "value V" (of a foreign key)
local SHOWN = 500
local reply = {'free', num(now), num(call('ZCARD', QUEUE))}
local function add(kind, text) reply[#reply + 1] = kind .. ' ' .. text end

-- Who holds a lock of Redisson's, "uuid:thread": a field of its hash. Of any other hash only a few fields are read.
local function redisson_holder()
  for _, field in ipairs(call('HSCAN', LOCK, 0)[2]) do
    if field:find('^%x+%-%x+%-%x+%-%x+%-%x+:%d+') then return field end
  end
end

if not load_lock() then
  local kind = call('TYPE', LOCK).ok
  reply[1] = 'foreign'
  add('type', kind)
  add('ttl', num(call('PTTL', LOCK)))
  local value = kind == 'string' and call('GETRANGE', LOCK, 0, 127) or kind == 'hash' and redisson_holder()
  if value then add('value', value) end
end
if capacity then add('capacity', num(capacity)) end
for _, r in pairs(holders) do
  if r.expires > now then reply[1] = 'held' elseif reply[1] == 'free' then reply[1] = 'cooling' end
  add('holder', string.format('%.0f %.0f %s %d %s %d %s',
    r.expires, r.cools, r.fence, r.slot, r.acquired, count_levels(r.levels), r.owner))
end
for _, token in ipairs(call('ZRANGE', QUEUE, 0, SHOWN - 1)) do
  local text = call('HGET', WAITERS, token)
  local w = text and parse_waiter(text)
  if w then add('waiter', string.format('%d %s %s', w.capacity, w.ticket, w.owner)) end
end
for _, name in ipairs({'last', 'acquired', 'waited', 'forced'}) do
  local value = call('HGET', META, name)
  if value then add(name, value) end
end
return reply
