-- force: break the lock whoever holds it, cooling included; with a fence only that acquisition.
-- A key of another program is deleted only without a fence.
-- KEYS  lock queue waiters meta
-- ARGV  fence('': all)
-- ->    evicted owner... | foreign type value | free
local fence = ARGV[1]

if not load_lock() then
  if fence ~= '' then return {'free'} end
  local kind = call('TYPE', LOCK).ok
  local value = kind == 'string' and call('GETRANGE', LOCK, 0, 127) or ''
  call('DEL', LOCK)
  count_seats()
  serve_next()
  return {'foreign', kind, value}
end

local doomed, reply = {}, {'evicted'}
for token, r in pairs(holders) do
  if fence == '' or r.fence == fence then
    doomed[#doomed + 1] = token
    reply[#reply + 1] = r.owner
  end
end
if #doomed == 0 then return {'free'} end
for _, token in ipairs(doomed) do remove(token) end
call('HSET', META, 'forced', num(tonumber(call('HGET', META, 'forced') or 0) + #doomed))
call('PEXPIRE', META, MEMORY)
serve_next()
return reply
