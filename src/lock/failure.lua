-- Part of the verbs by which acquisitions begin and end: failures in a row, for --backoff and --attempts.
-- NEEDS lock memory success
--   failures  in META, newest first, a line "fence acquired ended end id host" for each run with --backoff, --once or
--             --once-per that failed; the id is = if it has none. A success ends the row, and takes away the lines of
--             its own ID.
local cool_down, note_failure, forget_failure, forget_id, count_failures, failed_attempts, exhausted

do
  local MOST = 50                -- lines of one ID that are kept, and attempts that may be asked for
  local MOST_OF_ALL = 200        -- lines that are kept

  local function read_failures()
    local all = {}
    for line in recall('failures'):gmatch('[^\n]+') do
      local fence, acquired, ended, word, id, host = line:match('^(%d+) (%d+) (%d+) (%S+) (%S+) (%S*)$')
      if fence then
        all[#all + 1] = {fence = fence, acquired = acquired, ended = tonumber(ended), word = word, id = id, host = host,
                         line = line}
      end
    end
    return all
  end

  -- Those since the last success, or those with that ID. If the clock was set back since that success, only the fences
  -- tell what came later.
  local function in_a_row(id)
    local granted, since = meta.success:match('^(%d+) (%d+)')
    granted, since = tonumber(granted) or -1, tonumber(since) or -1
    local row = {}
    for _, failure in ipairs(read_failures()) do
      local is_later = failure.ended > since or since > now and tonumber(failure.fence) >= granted * 1000
      if id and failure.id == id or not id and is_later then row[#row + 1] = failure end
    end
    return row
  end

  local function keep(is_kept)
    local lines, counts = {}, {}
    for _, failure in ipairs(read_failures()) do
      local count = (counts[failure.id] or 0) + 1
      if #lines < MOST_OF_ALL and count <= MOST and is_kept(failure) then
        lines[#lines + 1], counts[failure.id] = failure.line, count
      end
    end
    if #lines > 0 or recall('failures') ~= '' then note('failures', table.concat(lines, '\n')) end
  end

  -- Leaves the lock cooling after a run that has failed, longer after each further failure in a row. The record of one
  -- that died is made anew for that, unless the key is another program's.
  function cool_down(token, run, ended, word)
    local first, most = (extra(run.tail, 'backoff') or ''):match('^(%d+)%-(%d+)$')
    local count = math.max(1, #in_a_row())
    local delay = first and math.min(first * 2 ^ (count - 1), most) or 0
    local r = holders[token]
    if ended + delay <= now or not r and seats > 0 and not capacity then return end
    if not r then
      r = {expires = math.min(ended, now), cools = 0, ttl = 0, hold = 0, fence = run.fence, slot = 0,
           acquired = run.acquired, waited = run.waited, kept = '0', levels = 'ended', tail = run.tail}
      holders[token] = r
      take_seat(capacity or tonumber(run.capacity))
    end
    r.tail = with_extra(r.tail, 'failed', count .. ',' .. word)
    r.tail = with_extra(r.tail, 'bar', ended + delay)
    if r.cools > now then r.tail = with_extra(r.tail, 'min', r.cools) end
    r.cools, r.hold, touched[token] = math.max(r.cools, ended + delay), math.max(r.hold, delay), true
    find_bar()
  end

  function note_failure(token, run, ended, word)
    local id = extra(run.tail, 'once')
    if not (id or extra(run.tail, 'per') or extra(run.tail, 'backoff')) then return end
    local host = run.owner:match('^%S* (%S*)') or ''
    local line = table.concat({run.fence, run.acquired, num(ended), word, id or '=', host}, ' ')
    local before = recall('failures')
    note('failures', before == '' and line or line .. '\n' .. before)
    keep(function() return true end)
    cool_down(token, run, ended, word)
  end

  function forget_failure(fence)
    keep(function(failure) return failure.fence ~= fence end)
  end

  function forget_id(id)
    keep(function(failure) return failure.id ~= id end)
  end

  function count_failures() return #in_a_row() end

  -- With --attempts: how many have failed, and the last of them. With a spacing instead of an ID, those count that were
  -- made within that time.
  function failed_attempts(tail)
    if not extra(tail, 'attempts') then return 0 end
    local id, per = extra(tail, 'once'), tonumber(extra(tail, 'per'))
    local count, last = 0, nil
    for _, failure in ipairs(in_a_row(id)) do
      if id or per and math.abs(now - failure.acquired) < per then
        count, last = count + 1, last or failure
      end
    end
    return count, last
  end

  -- The same, if --attempts allows no more.
  function exhausted(tail)
    local count, last = failed_attempts(tail)
    if last and count >= tonumber(extra(tail, 'attempts')) then return count, last end
  end
end
