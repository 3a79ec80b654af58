-- Part of most verbs: what the lock remembers beyond its holders, in the hash META.
-- NEEDS clock
--   state     "floor acquired waited evicted lost failed": the last fence given, and counters. A later version may add
--             words
--   running   a line for each acquisition in progress, see running.lua
--   success   "granted ended owner id" of runs that ended with status 0, see success.lua
--   died      a line for each of the last that have died unreported, see history.lua
--   newest    "born level token owner" of the last taker that asked with --latest or --replace; born 0 once it has left
--   superseded   "level until ", newest first: the levels whose place the newest have taken
--   ticket    the last ticket given
--   memory    how long META must live, in ms, if that is longer than usual
--   hold      "until id begun owner" of a hold: until then nobody is granted the lock; see hold.lua
--   holds     the holds that there were, newest first, a line "id begun until ended end_id ender owner" for each; ended
--             is 0, and the next two are '-', if nobody has ended it
-- and what became of a level, or of all levels of a token, each in a key of its own for a minute:
--   LEVEL_END   r released, c cancelled, t cancelled since its wait was over, l released when its lock was
--               already lost
--   TOKEN_END   the ID of the request by which somebody released all of its levels
local LIFE = 2592000000        -- META is kept 30 days
local ENDED_FOR = 60000        -- how long a request may be on its way after its level has ended

local meta = {}                -- field -> value that was read or will be written, '' if there is none
local news = {}                -- field -> value that is still to be written
local floor, later_words = 0, ''
local counters = {acquired = 0, waited = 0, evicted = 0, lost = 0, failed = 0}
local is_known = true          -- whether we can read what stands in `state`; if not, it stays
local state_changed = false
local is_old = false           -- whether the expiry of META is to be renewed, or set

local function read_meta()
  local names = {'state', 'running', 'success', 'hold', 'ticket'}
  local values = call('HMGET', META, unpack(names))
  for i, name in ipairs(names) do meta[name] = values[i] or '' end
  is_old = not values[1]
  if is_old then return end
  local last, acquired, waited, evicted, lost, rest = values[1]:match('^(%d+) (%d+) (%d+) (%d+) (%d+)(.*)$')
  is_known = last ~= nil
  if not is_known then return end
  floor = tonumber(last)
  is_old = now_us - floor > LIFE * 500 -- whoever was granted the lock half of META's life ago may hold it still
  local failed, later = rest:match('^ (%d+)(.*)$')
  later_words = failed and later or rest
  counters = {acquired = acquired, waited = waited, evicted = evicted, lost = lost, failed = failed or 0}
end

local function note(name, value) meta[name], news[name] = value, value end

-- For the fields that are seldom needed.
local function recall(name)
  if not meta[name] then meta[name] = call('HGET', META, name) or '' end
  return meta[name]
end

local function count(name, more)
  counters[name], state_changed = math.max(0, counters[name] + (more or 1)), true
end

-- Until when nobody is to be granted the lock: a time in the past if it is not on hold.
local function held_back_until() return tonumber(recall('hold'):match('^%d+')) or 0 end

local function is_on_hold() return meta.hold ~= '' and held_back_until() > now end

local function keep_meta()
  call('PEXPIRE', META, math.max(LIFE, tonumber(recall('memory')) or 0, held_back_until() - now + ENDED_FOR))
end

local function keep_memory()
  keep_meta()
  call('PEXPIRE', HISTORY, LIFE)
end

-- A fence that cannot be raised would be given twice.
local function can_grant() return is_known and floor < LARGEST end

local function no_fence()
  return redis.error_reply('RLOCK no fence can follow the last one: look at the field state of ' .. META)
end

local function raise_floor(fence) floor, state_changed = math.max(floor, fence), true end

-- Returns a fence larger than every other, and notes it.
local function next_fence()
  local DAY_US = 86400000000 -- the expiry of META is renewed when the lock is granted for the first time on a day
  is_old = is_old or math.floor(now_us / DAY_US) ~= math.floor(floor / DAY_US)
  raise_floor(math.max(floor + 1, now_us))
  return num(floor)
end

local function format_state()
  return num(floor) .. ' ' .. counters.acquired .. ' ' .. counters.waited .. ' ' .. counters.evicted .. ' ' ..
    counters.lost .. ' ' .. counters.failed .. later_words
end

local function write_meta()
  if state_changed and is_known then note('state', format_state()) end
  state_changed = false
  local fields = {}
  for name, value in pairs(news) do fields[#fields + 1], fields[#fields + 2] = name, value end
  if #fields == 0 then return end
  call('HSET', META, unpack(fields))
  if is_old then keep_memory() end
  news, is_old = {}, false
end
