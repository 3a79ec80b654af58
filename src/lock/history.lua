-- Part of the verbs by which acquisitions begin and end: the acquisitions in progress, and those that have ended.
--   running   in META, newest first, lines of "token fence acquired born mode lasts owner extras"; lasts: the end of a
--             lease that nobody renews, else 0; extras: evict, end and once as in the record, which may be gone before
--             it is known how the run ended. An acquisition that is listed but no longer holds has ended unreported.
--   HISTORY   list of "fence acquired ended waited mode end owner", newest last, the owner's words shortened
local ENTRIES = 100
local TRIM_EVERY = 4           -- the list is cut only when it has this many more
local ENTRY_SIZE = 180         -- bytes at most
local END_SIZE = 64            -- of them, for how it ended
local RUNNING = 16             -- lines at most

local entries = {}             -- to be written

local function cut(text, size)
  if #text <= size then return text end
  local short = text:sub(1, math.max(0, size - 3)):gsub('%%%x?$', '')
  return short .. '...'
end

-- Shortens the owner's words. The command gets whatever room the others leave.
local function cut_owner(owner, size)
  local holder, host, user, pid, command, text = owner:match('^(%S*) (%S*) (%S*) (%S*) (%S*) (%S*)')
  if not holder then return cut(owner:gsub(' ', '%%20'), size) end
  pid = pid:sub(1, 10)
  local room = size - 5 - #pid
  holder, host, user = cut(holder, room / 3), cut(host, room / 4), cut(user, room / 8)
  room = room - #holder - #host - #user
  text = cut(text, room / 3)
  return table.concat({holder, host, user, pid, cut(command, room - #text), text}, ' ')
end

-- Shortens "evicted,BY". Of BY, 'holder pid N "command"', the PID is kept to the last.
local function cut_end(how)
  if #how <= END_SIZE then return how end
  local by, pid = how:match('^(.-)(%%20pid%%20%d+)')
  if not pid then return cut(how, END_SIZE) end
  return cut(by, END_SIZE - #pid) .. pid
end

local function format_entry(run, ended, how)
  local waited = math.max(0, run.acquired - run.born)
  local head = string.format('%s %s %.0f %.0f %s %s ', run.fence, run.acquired, ended, waited, run.mode, cut_end(how))
  return head .. cut_owner(run.owner, ENTRY_SIZE - #head)
end

-- In a quorum the servers know an acquisition by the fence on which they have agreed. A server that was not told that
-- fence leaves the history to the others.
local function is_settled(r) return not extra(r.tail, 'quorum') or extra(r.tail, 'settled') ~= nil end

local function run_of(r, mode)
  return {fence = r.fence, acquired = r.acquired, born = tonumber(extra(r.tail, 'born')) or r.acquired, mode = mode,
          owner = owner_of(r.tail), tail = r.tail, settled = is_settled(r)}
end

local function parse_line(line)
  local token, fence, acquired, born, mode, lasts, tail =
    line:match('^(%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
  return token and {token = token, fence = fence, acquired = acquired, born = tonumber(born), mode = mode,
                    lasts = tonumber(lasts), owner = owner_of(tail), tail = tail, settled = true}
end

local function start_line(token, r, mode)
  local run = run_of(r, mode)
  local lasts = extra(r.tail, 'kept') and 0 or r.acquired + (tonumber(extra(r.tail, 'ttl')) or 0)
  local line = string.format('%s %s %s %.0f %s %.0f %s', token, r.fence, r.acquired, run.born, mode, lasts, run.owner)
  for _, name in ipairs({'evict', 'end', 'once'}) do
    local value = extra(r.tail, name)
    if value then line = with_extra(line, name, value) end
  end
  local lines = {line}
  for other in (meta.running or ''):gmatch('[^\n]+') do
    if #lines < RUNNING then lines[#lines + 1] = other end
  end
  note('running', table.concat(lines, '\n'))
end

-- Adds to the record, and to its line, what decides how the acquisition will be said to have ended.
local function note_extra(token, r, name, value)
  r.tail, touched[token] = with_extra(r.tail, name, value), true
  local lines = {}
  for line in (meta.running or ''):gmatch('[^\n]+') do
    local is_its_line = line:sub(1, #token + 1) == token .. ' '
    lines[#lines + 1] = is_its_line and with_extra(line, name, value) or line
  end
  note('running', table.concat(lines, '\n'))
end

-- Makes a holder give up the lock: its keeper is not renewed any more, and is to be told. KIND is forced or replaced.
local function evict_holder(token, r, kind, by)
  note_extra(token, r, 'evict', kind .. ',' .. by)
  count('forced')
end

-- Removes the token's line, and returns it as a table.
local function strike(token)
  local lines, struck = {}, nil
  for line in (meta.running or ''):gmatch('[^\n]+') do
    local run = parse_line(line)
    if run and run.token == token then struck = run else lines[#lines + 1] = line end
  end
  if struck then note('running', table.concat(lines, '\n')) end
  return struck
end

local function add_entry(run, ended, how) entries[#entries + 1] = format_entry(run, ended, how) end

-- `status` is the command's exit status if it ended by itself or by a signal, else how the run ended.
local function note_last(run, ended, status)
  local held = math.max(0, ended - run.acquired)
  note('last', string.format('%s %.0f %.0f %s %s', run.acquired, ended, held, status, run.owner))
end

-- "evicted,BY" or "replaced,BY" for a record that was marked so, else nil.
local function eviction_end(r)
  local kind, by = eviction_of(r)
  return kind and (kind == 'forced' and 'evicted' or kind) .. ',' .. by
end

-- How the level that made the acquisition has ended, if others still shared it then: a status and a cause.
local function end_of_first(r) return (extra(r.tail, 'end') or ''):match('^(.-)/(.*)$') end

local function note_success(run, ended, id)
  local lines = {string.format('%s %.0f %s %s', run.acquired, ended, run.owner, id)}
  for line in (meta.success or ''):gmatch('[^\n]+') do
    if #lines < SUCCESSES and line:match(' (%S*)$') ~= id then lines[#lines + 1] = line end
  end
  note('success', table.concat(lines, '\n'))
end

-- Records an end in all places: the history, the last run, the counters and the successes. `status` is the command's,
-- or '-'; `cause` is signal:N, lost, died and the like, or '' if the status tells.
local function record_end(run, ended, status, cause)
  local word = cause ~= '' and cause or status ~= '-' and status or eviction_end(run) or 'released'
  if run.settled then add_entry(run, ended, word) end
  note_last(run, ended, cause:match('^signal:') and status ~= '-' and status or word)
  if word == 'lost' or word == 'died' then count('lost') end
  if word == '0' then note_success(run, ended, extra(run.tail, 'once') or '') end
end

-- The acquisitions that are listed but no longer hold, with when they ended.
local function dead_runs()
  local dead = {}
  for line in (meta.running or ''):gmatch('[^\n]+') do
    local run = parse_line(line)
    local r = run and (holders[run.token] or expired[run.token])
    if run and not is_live(r) then
      run.ended = r and r.expires or run.lasts > 0 and math.min(now, run.lasts) or now
      dead[#dead + 1] = run
    end
  end
  return dead
end

local function bury_dead()
  for _, run in ipairs(dead_runs()) do
    strike(run.token)
    local status, cause = end_of_first(run)
    local unreported = eviction_end(run) or was_released(run.token) and 'released' or 'died'
    record_end(run, run.ended, status or '-', cause or unreported)
  end
end

-- A user with the rights that 0.1.0 needed may not write it. That must not keep the lock from being taken or released.
local function write_history()
  if #entries == 0 then return end
  local length = redis.pcall('RPUSH', HISTORY, unpack(entries))
  if tonumber(length) then
    if length >= ENTRIES + TRIM_EVERY then redis.pcall('LTRIM', HISTORY, -ENTRIES, -1) end
    call('PEXPIRE', HISTORY, LIFE)
  end
  entries = {}
end

-- The lock comes first: a server that is out of memory allows a write that only removes, and every write after it.
local function write_all()
  write_lock()
  write_meta()
  write_history()
end

-- For those that only look: what they find out stays found out, so that a run does not seem to have died just now
-- whenever somebody looks. A user who may only read, a replica and a server that is out of memory refuse that.
local function bury_dead_if_allowed()
  bury_dead()
  pcall(write_all)
end
