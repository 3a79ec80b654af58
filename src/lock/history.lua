-- Part of the verbs by which acquisitions end: they record each end, also that of a run that has died.
-- NEEDS lock memory running entry success failure
--   died      in META, the lines of the last that have died unreported, each after the time of its death: whoever comes
--             late and knows better sets its end right

local entries = {}             -- to be written

-- In a quorum the servers know an acquisition by the fence on which they have agreed. A server that was not told that
-- fence leaves the history to the others.
local function is_settled(r) return not extra(r.tail, 'quorum') or extra(r.tail, 'settled') ~= nil end

-- An acquisition that ends, as its record tells.
local function run_of(token, r, cap)
  return {token = token, fence = r.fence, acquired = r.acquired, waited = r.waited, capacity = cap,
          owner = owner_of(r.tail), tail = r.tail, is_settled = is_settled(r)}
end

-- The same as its line tells.
local function parse_line(line)
  local token, cap, fence, acquired, waited, lasts, tail = line:match('^(%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
  return token and {token = token, fence = fence, acquired = tonumber(acquired), waited = tonumber(waited),
                    capacity = cap, lasts = tonumber(lasts), owner = owner_of(tail), tail = tail, is_settled = true,
                    line = line}
end

-- Lists an acquisition as running. Of a crowd only some are listed.
local function start_line(token, r, cap)
  local RUNNING = 16 -- lines at most
  local _, others = meta.running:gsub('\n', '')
  if others >= RUNNING - 1 then return end
  local line = format_line(token, cap, r)
  note('running', meta.running == '' and line or line .. '\n' .. meta.running)
end

-- Where the token's line begins and ends among those lines.
local function find_line(lines, token)
  local at = ('\n' .. lines):find('\n' .. token .. ' ', 1, true)
  if at then return at, (lines:find('\n', at, true) or #lines + 1) - 1 end
end

-- Adds to the record, and to its line, what decides how the acquisition will be said to have ended.
local function note_extra(token, r, name, value)
  r.tail, touched[token] = with_extra(r.tail, name, value), true
  local from, to = find_line(meta.running, token)
  if not from then return end
  local line = with_extra(meta.running:sub(from, to), name, value)
  note('running', meta.running:sub(1, from - 1) .. line .. meta.running:sub(to + 1))
end

-- Makes a holder give up the lock: its keeper gets no more renewals, and must be told. KIND is forced or replaced.
local function evict_holder(token, r, kind, by)
  note_extra(token, r, 'evict', kind .. ',' .. by)
  count('evicted')
end

-- Removes the token's line, and returns it as a table.
local function strike(token)
  local from, to = find_line(meta.running, token)
  if not from then return nil end
  local run = parse_line(meta.running:sub(from, to))
  local before = meta.running:sub(1, math.max(0, from - 2))
  note('running', from == 1 and meta.running:sub(to + 2) or before .. meta.running:sub(to + 1))
  return run
end

-- Takes back that a grant which has run out was taken for a run that died: its taker has not used it.
local function disown(token)
  strike(token)
  for fence in recall('died'):gmatch(' ' .. token .. ' %d+ (%d+) ') do forget_failure(fence) end
end

-- "evicted,BY" or "replaced,BY" for a record that was marked so, else nil.
local function eviction_end(r)
  local kind, by = eviction_of(r)
  return kind and (kind == 'forced' and 'evicted' or kind) .. ',' .. by
end

-- How the level that made the acquisition has ended, if others still shared it then: a status, a cause, and whether it
-- is excused.
local function end_of_first(r)
  local status, cause, excuse = (extra(r.tail, 'end') or ''):match('^(.-)/([^/]*)(/?)$')
  return status, cause, excuse == '/'
end

-- Whether somebody renews it, who can be told to give it up: its own keeper, or that of a run inside it.
local function has_keeper(r)
  if r.kept == '1' then return true end
  local is_maker = not end_of_first(r)
  for ms in r.levels:gmatch(':(%d+)') do
    if not is_maker and tonumber(ms) > now then return true end
    is_maker = false
  end
  return false
end

-- The text of its owner as others are told it: with a dash after the PID once the run that made it has ended, while one
-- inside it goes on.
local function mark_departed(r, owner)
  return end_of_first(r) and (owner:gsub('^(%S* %S* %S* %d+)[-+]?', '%1-')) or owner
end

-- The word of the history for a status, or '-', and a cause: signal:N, lost, died and the like, or '' if the status
-- tells.
local function end_word(run, status, cause)
  return cause ~= '' and cause or status ~= '-' and status or eviction_end(run) or 'released'
end

local function success_line(run, ended)
  return run.acquired .. ' ' .. ended .. ' ' .. run.owner .. ' ' .. (extra(run.tail, 'once') or '')
end

local entry_of

do
  local END_SIZE = 64 -- bytes at most

  -- Shortens "evicted,BY". BY is 'holder pid N "command"', of which the PID is never cut.
  local function cut_end(how)
    if #how <= END_SIZE then return how end
    local by, pid = how:match('^(.-)(%%20pid%%20%d+)')
    if not pid then return cut(how, END_SIZE) end
    return cut(by, END_SIZE - #pid) .. pid
  end

  function entry_of(run, ended, word)
    return format_entry(run.fence, run.acquired, ended, run.waited, run.capacity, cut_end(word), run.owner)
  end
end

-- Records an end in all places: the history, the counters and the successes.
local function record_end(run, ended, status, cause, excused)
  local word = end_word(run, status, cause)
  if run.is_settled then entries[#entries + 1] = entry_of(run, ended, word) end
  if word == 'lost' or word == 'died' then count('lost') end
  if is_failure(word) and not excused then
    count('failed')
    note_failure(run.token, run, ended, word)
  end
  if word == '0' then
    note_success(success_line(run, ended))
    local id = extra(run.tail, 'once')
    if id then forget_id(id) end
  end
  return word
end

local bury_dead

do
  local DIED = 8 -- lines at most

  local function remember_death(run)
    local lines = run.ended .. ' ' .. run.line
    local kept = 1
    for line in recall('died'):gmatch('[^\n]+') do
      kept = kept + 1
      if kept <= DIED then lines = lines .. '\n' .. line end
    end
    note('died', lines)
  end

  -- The acquisitions that are listed but no longer hold, with when they ended.
  local function dead_runs()
    local dead, runs, tokens = {}, {}, {}
    for line in meta.running:gmatch('[^\n]+') do
      local run = parse_line(line)
      if run then runs[#runs + 1], tokens[#tokens + 1] = run, run.token end
    end
    read_records(tokens)
    for _, run in ipairs(runs) do
      local r = holders[run.token] or expired[run.token]
      if not is_live(r) then
        run.ended = r and r.expires or run.lasts > 0 and math.min(now, run.lasts) or now
        dead[#dead + 1] = run
      end
    end
    return dead
  end

  function bury_dead()
    if meta.running == '' then return end
    for _, run in ipairs(dead_runs()) do
      strike(run.token)
      local status, cause, excused = end_of_first(run)
      local word = record_end(run, run.ended, status or '-', cause or eviction_end(run) or 'died', excused)
      if word == 'died' then remember_death(run) end
    end
  end
end

local function write_history()
  if #entries > 0 then push_entries(unpack(entries)) end
  entries = {}
end

-- The lock comes first: a server that is out of memory allows a write that only removes, and every write after it.
local function write_all()
  if next(expired) then bury_dead() end
  for token in pairs(expired) do touched[token] = true end
  write_lock()
  write_meta()
  write_history()
end
