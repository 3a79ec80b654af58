-- Part of the verb that may hear late how an acquisition ended.
-- NEEDS history

-- Forgets that the token was recorded as having died, and returns its line: the last, if several of its grants ran out.
local function take_death(token)
  local found
  local kept = {}
  for line in recall('died'):gmatch('[^\n]+') do
    local ended, rest = line:match('^(%d+) (.*)$')
    local run = rest and parse_line(rest)
    if run and run.token == token then
      run.ended, found = ended, found or run -- the newest stands first
    else
      kept[#kept + 1] = line
    end
  end
  if found then note('died', table.concat(kept, '\n')) end
  return found
end

-- What is left is its minimum hold, if that is not over.
local function forget_cool_down(token, r)
  r.cools, touched[token] = tonumber(extra(r.tail, 'min') or 0), true
  for _, name in ipairs({'failed', 'bar', 'min'}) do r.tail = r.tail:gsub(' ' .. name .. '=%S*', '') end
end

-- Corrects what a mistaken death has left cooling, and for how long others cool.
local function correct_failure(run, word, has_failed)
  forget_failure(run.fence)
  local r = holders[run.token]
  if r and extra(r.tail, 'failed') then
    forget_cool_down(run.token, r)
    if r.cools <= now then remove(run.token) end
  end
  if has_failed then note_failure(run.token, run, tonumber(run.ended), word) end
  for token, other in pairs(holders) do
    local how = not is_live(other) and (extra(other.tail, 'failed') or ''):match('^%d+,(.*)$')
    if how and token ~= run.token then
      forget_cool_down(token, other)
      cool_down(token, run_of(token, other, capacity), other.expires, how)
      if other.cools <= now then remove(token) end
    end
  end
  find_bar()
end

-- Corrects the end of an acquisition that was recorded as having died.
local function correct_end(run, status, cause, excused)
  local word = end_word(run, status, cause)
  if word ~= 'lost' then count('lost', -1) end
  local has_failed = is_failure(word) and not excused
  if not has_failed then count('failed', -1) end
  if word == '0' then note_success(success_line(run, run.ended)) end
  local id = word == '0' and extra(run.tail, 'once')
  if id then forget_id(id) end
  correct_failure(run, word, has_failed)
  write_meta()
  local list = call('LRANGE', HISTORY, 0, -1)
  for i = #list, 1, -1 do
    if list[i]:sub(1, #run.fence + 1) == run.fence .. ' ' then
      call('LSET', HISTORY, i - 1, entry_of(run, run.ended, word))
      return
    end
  end
end
