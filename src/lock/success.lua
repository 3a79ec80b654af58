-- Part of the verbs that ask for successes or add one.
-- NEEDS lock memory
--   success   in META, "granted ended owner id" of runs that ended with status 0, the last to end first. One that was
--             granted later than those for the same ID that have ended since is kept beside them.
local note_success, success_for

-- The ID of a slot has a colon, which in an ID of the user is percent-encoded.
local function is_slot(id) return id:find(':', 1, true) ~= nil end

do
  local MOST_IDS = 8             -- how many are kept, slots aside
  local MOST_OF_KIND = 4         -- how many of each kind of slot, whatever other IDs have succeeded since

  local function parse_success(line)
    local granted, ended, id = line:match('^(%d+) (%d+) .* (%S*)$')
    return granted and {granted = tonumber(granted), ended = tonumber(ended), id = id, line = line}
  end

  local successes                -- as META has them

  local function read_successes()
    if successes then return successes end
    successes = {}
    for line in meta.success:gmatch('[^\n]+') do successes[#successes + 1] = parse_success(line) end
    return successes
  end

  -- The first of each kind, and the one that was granted last.
  local function write_successes(all)
    local latest, counts, lines = all[1], {}, {}
    for _, s in ipairs(all) do
      if s.granted > latest.granted then latest = s end
    end
    for _, s in ipairs(all) do
      local kind = s.id:match('^%a+:') or ''
      counts[kind] = (counts[kind] or 0) + 1
      if counts[kind] <= (kind == '' and MOST_IDS or MOST_OF_KIND) or s == latest then lines[#lines + 1] = s.line end
    end
    note('success', table.concat(lines, '\n'))
    successes = nil
  end

  -- One that is heard of late takes its place among the others. One that ended in the future is a relic of a wrong
  -- clock, and comes after it.
  function note_success(line)
    local new = parse_success(line)
    local all, place = {}, nil
    for _, s in ipairs(read_successes()) do
      local is_same, is_relic = s.id == new.id, s.ended > now
      local is_older = is_relic or s.ended <= new.ended
      if is_same and not is_older and s.granted >= new.granted then return end
      if not place and is_older then
        place = #all + 1
        all[place] = new
      end
      if not (is_same and is_older and (is_relic or s.granted <= new.granted)) then all[#all + 1] = s end
    end
    if not place then all[#all + 1] = new end
    write_successes(all)
  end

  -- The success that makes a run unnecessary. With --once it is one with the same ID: the last success, or one that
  -- ended while the run waited, since the run may hear of that only after the next has ended; for a slot of the
  -- calendar it is any. With --once-per D it is any that was granted within that time. One that is not the last and
  -- ended in the future, or was granted too far in it, is a relic of a wrong clock. With both options both must hold.
  function success_for(tail, since)
    local once, per = extra(tail, 'once'), tonumber(extra(tail, 'per'))
    if not (once or per) then return nil end
    local best
    for i, s in ipairs(read_successes()) do
      local is_ours = not once or once == s.id and (i == 1 or is_slot(once) or s.ended >= since and s.ended <= now)
      if is_ours and (not per or math.abs(now - s.granted) < per) and (not best or s.granted > best.granted) then
        best = s
      end
    end
    return best and best.line
  end
end

-- A success is remembered for as long as the longest --once or --once-per that was ever asked for needs it: 400 days,
-- or for a slot 62, since a month has 31 and whoever began in it may wait.
-- A spacing needs a day more than it lasts, since the expiry of META is renewed once a day.
local function lengthen_memory(tail)
  local DAY = 86400000
  local once = extra(tail, 'once')
  local for_id = once and (is_slot(once) and 62 or 400) * DAY or 0
  local per = tonumber(extra(tail, 'per'))
  local longest = math.max(for_id, per and per + DAY or 0)
  if longest <= LIFE or longest <= (tonumber(recall('memory')) or 0) then return end
  note('memory', num(longest))
  is_old = true
end
