-- Part of every verb: its keys, and the clock. Times are the server's, in ms; fences and tickets are in us.
-- Times are joined to text by `..`, which writes 14 digits in full, and fences by num(), since they have 16.
if redis.replicate_commands then redis.replicate_commands() end -- Redis 5 and 6: TIME before a write

local LOCK, QUEUE, WAITERS, META, HISTORY, SEATS, LEVEL_END, TOKEN_END = unpack(KEYS)
local SHORT = 5000               -- a grant lasts no longer unless it is renewed
local LARGEST = 9007199254740991 -- a double holds every whole number up to this one

local call = redis.call
local clock = call('TIME')
local now_us = clock[1] * 1000000 + clock[2]
local now = math.floor(now_us / 1000)

local function num(x) return string.format('%.0f', x) end

-- A duration of a request. A fraction, or a number too large to be written in full, would make a record unreadable.
local function duration(word)
  local LONGEST = 1000000000000 -- 31 years
  return math.floor(math.max(0, math.min(tonumber(word), LONGEST)))
end
