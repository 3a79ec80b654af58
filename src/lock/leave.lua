-- Part of the verbs by which a level gives up what its acquisition holds.
-- NEEDS queue

-- Whether the acquisition is this level's: the first in the record has made it.
local function has_made(levels, level) return find_level(levels, level) == 1 end

local function levels_without(levels, level)
  local from, to = find_level(levels, level)
  if not from then return levels end
  if from > 1 then return levels:sub(1, from - 2) .. levels:sub(to + 1) end
  return levels:sub(to + 2)
end

-- Until when the last of its levels counts on it.
local function last_end(r)
  if not r.levels:find(':', 1, true) then return r.expires end
  local last = 0
  for ms in r.levels:gmatch(':(%d+)') do last = math.max(last, tonumber(ms)) end
  return math.min(last, r.expires)
end

-- Takes the level out of the record, which lasts as long as one of the others counts on it. Returns whether one does:
-- if none does, the acquisition is over. One that must be given up is over with its last keeper.
local function leave(token, r, level)
  touched[token] = true
  local left = levels_without(r.levels, level)
  if left == '' then return false end
  r.levels = left
  r.expires = last_end(r)
  return is_live(r) and (has_keeper(r) or not eviction_of(r))
end

-- Ends an acquisition the way the level that made it ended, whichever level is the last to leave: as told here if that
-- one is the last, else as it said when it left; if it said nothing it was evicted or has died.
local function end_run(token, r, status, cause, excused)
  local its_status, its_cause, its_excuse = end_of_first(r)
  if its_status then
    status, cause, excused = its_status, its_cause, its_excuse
  elseif not status then
    status, cause = '-', eviction_end(r) or 'died'
  end
  strike(token)
  record_end(run_of(token, r, capacity), now, status, cause, excused)
  if r.cools > now then r.expires, touched[token] = now, true else remove(token) end
  find_bar()
end
