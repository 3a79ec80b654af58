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

if not load_lock() then
  local kind = call('TYPE', LOCK).ok
  reply[1] = 'foreign'
  add('type', kind)
  add('ttl', num(call('PTTL', LOCK)))
  if kind == 'string' then add('value', call('GETRANGE', LOCK, 0, 127)) end
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
