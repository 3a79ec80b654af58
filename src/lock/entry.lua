-- Part of the verbs that record how acquisitions ended.
--   HISTORY   list of "fence acquired ended waited capacity end owner", newest last, the owner's words shortened

-- Whether a word of the history says that a run has failed: other than 0, killed, died, lost or too long; not one that
-- was told to stop.
local function is_failure(word)
  return tonumber(word) and word ~= '0' or word == 'died' or word == 'lost' or word == 'timeout' or
    word:find('^signal:') ~= nil
end

local function cut(text, size)
  if #text <= size then return text end
  local short = text:sub(1, math.max(0, size - 3)):gsub('%%%x?$', '')
  return short .. '...'
end

local format_entry

do
  local ENTRY_SIZE = 180         -- bytes at most

  -- Shortens the owner's words. The note says more than the command, which gets whatever room the others leave.
  local function cut_owner(owner, size)
    local holder, host, user, pid, command, text = owner:match('^(%S*) (%S*) (%S*) (%S*) (%S*) (%S*)')
    if not holder then return cut(owner:gsub(' ', '%%20'), size) end
    pid = pid:sub(1, 10)
    local room = size - 5 - #pid
    holder, host, user = cut(holder, room / 3), cut(host, room / 4), cut(user, room / 8)
    room = room - #holder - #host - #user
    text = cut(text, room * 2 / 3)
    return table.concat({holder, host, user, pid, cut(command, room - #text), text}, ' ')
  end

  function format_entry(fence, acquired, ended, waited, cap, how, owner)
    local head = fence .. ' ' .. acquired .. ' ' .. ended .. ' ' .. waited .. ' ' .. cap .. ' ' .. how .. ' '
    return head .. (#head + #owner <= ENTRY_SIZE and owner or cut_owner(owner, ENTRY_SIZE - #head))
  end
end

local function push_entries(...)
  local length = call('RPUSH', HISTORY, ...)
  if length > 103 then call('LTRIM', HISTORY, -100, -1) end -- not each time, since that costs as much again
  call('PEXPIRE', HISTORY, LIFE)
end
