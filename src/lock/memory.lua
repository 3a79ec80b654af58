-- Part of most verbs: what the lock remembers beyond its holders, in the hash META.
--   floor ticket    the last fence and ticket given
--   acquired waited forced lost    counters
--   last            "acquired ended held_ms end owner" of the last run
--   success         "granted ended owner id" of runs that ended with status 0, newest first, a line for each ID
--   newest          "born level token owner" of the last taker that asked with --latest or --replace;
--                   born is 0 once it has left
--   gone            "level letter until ", newest first: levels that were released, cancelled or superseded
--   released        "token:until token:until", newest first: tokens that somebody other than their keeper released
--   running         a line for each acquisition in progress, see history.lua
--   memory          how long META must live, in ms, if that is longer than usual
local FIELDS = {'floor', 'ticket', 'acquired', 'waited', 'forced', 'lost', 'success', 'newest', 'gone', 'released',
                'running', 'memory'}
local LIFE = 2592000000        -- META is kept 30 days
local SUCCESSES = 8            -- how many are kept
local GONE = 64                -- how many ended levels are remembered
local GONE_FOR = 60000         -- and for how long
local GONE_SIZE = 33           -- of one entry, with its space

local meta = {}                -- field -> value, false if there is none
local news = {}                -- field -> value that is still to be written

local function read_meta()
  local values = call('HMGET', META, unpack(FIELDS))
  for i, name in ipairs(FIELDS) do meta[name] = values[i] end
end

local function note(name, value) meta[name], news[name] = value, value end

local function meta_number(name) return tonumber(meta[name] or 0) or 0 end

local function count(name) note(name, num(meta_number(name) + 1)) end

local function keep_memory() call('PEXPIRE', META, num(math.max(LIFE, meta_number('memory')))) end

-- The lifetime of META starts anew with each grant.
local function write_meta()
  local fields = {}
  for name, value in pairs(news) do fields[#fields + 1], fields[#fields + 2] = name, value end
  if #fields == 0 then return end
  local added = call('HSET', META, unpack(fields))
  if added > 0 or news.floor then keep_memory() end
  news = {}
end

-- Entries have one size and are in the order in which they run out, so only the last ones need a look. An end too far
-- in the future was written before the clock was set back.
local function drop_old_entries(gone)
  while #gone > 0 do
    local till = tonumber(gone:sub(-14, -2)) or 0
    if till > now and till <= now + GONE_FOR then return gone end
    gone = gone:sub(1, -GONE_SIZE - 1)
  end
  return gone
end

-- What became of a level: 'r' released, 'c' cancelled, 's' superseded; nil if nothing is known of it.
local function fate(level)
  local gone = meta.gone or ''
  local at = gone:find(level .. ' ', 1, true)
  if not at then return nil end
  local letter, till = gone:match('^(%a) (%d+)', at + #level + 1)
  return letter and tonumber(till) > now and letter or nil
end

local function remember(level, letter)
  if fate(level) == letter then return end
  local entry = string.format('%s %s %013.0f ', level, letter, now + GONE_FOR)
  note('gone', entry .. drop_old_entries((meta.gone or ''):sub(1, (GONE - 1) * GONE_SIZE)))
end

-- For a keeper of 0.1.0, which looks for its token in this field.
local function mark_released(token, till)
  local marks = {token .. ':' .. num(till)}
  for mark in (meta.released or ''):gmatch('%S+') do
    if #marks == GONE then break end
    if (tonumber(mark:match(':(%d+)$')) or 0) > now then marks[#marks + 1] = mark end
  end
  note('released', table.concat(marks, ' '))
end

local function was_released(token) return (meta.released or ''):find(token .. ':', 1, true) ~= nil end

-- The success that makes a run unnecessary: with --once by its ID, with --once-per by its time, with both by both. It
-- is the last one, or one that ended while the run waited, since the run may hear of that only after the next has
-- ended. A success granted too far in the future is a relic of a wrong clock.
local function success_for(tail)
  local once, per = extra(tail, 'once'), tonumber(extra(tail, 'per'))
  if not (once or per) then return nil end
  local born = tonumber(extra(tail, 'born'))
  local is_last = true
  for line in (meta.success or ''):gmatch('[^\n]+') do
    local granted, ended, id = line:match('^(%d+) (%d+) .* (%S*)$')
    local counts = granted and (is_last or born and tonumber(ended) >= born)
    if counts and (not once or once == id) and (not per or math.abs(now - granted) < per) then return line end
    is_last = false
  end
end
