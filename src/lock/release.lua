-- release: give up one level, or all levels of a token. A repetition gets the same answer, but for the attempts.
-- KEYS  lock queue waiters meta history seats level_end token_end
-- ARGV  token level('*' and an ID of this request: all) exit_status('-': unknown)
--       end('': the status tells, else signal:N, evicted,BY, replaced,BY, lost, timeout, interrupted, ended or
--       released)
--       excused(1: told to stop, or not started, so that this is no failure; else 0)
--       inner(1: of a level inside another, which does not know how the acquisition ended; else 0)
-- ->    released [attempts] | cooling ms [attempts] | kept levels | lost
--       (attempts: how many have failed of those that --attempts counts, if this was one of them)

-- NEEDS clock record memory entry

local token, level, status, how, excused, is_inner = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5] == '1', ARGV[6] == '1'

-- Our record and the capacity, if nobody else holds the lock.
local function only_record()
  local fields = few_fields()
  if not fields or #fields ~= 4 then return nil end
  if fields[3] == token then return parse_record(fields[4]), fields[2] end
  if fields[1] == token then return parse_record(fields[2]), fields[4] end
end

-- Ends the only level of the only holder, if it has no extras, nothing is left to cool, no other acquisition is in
-- progress or has died, and no success is known but one without an ID. Returns whether it has, and whether anybody
-- waits: then META is still to be written, together with what the next holder changes.
local function release_plainly()
  local r, cap = only_record()
  if not r or r.levels ~= level or not is_live(r) or bound(r) or r.cools > now or r.tail:find('=', 1, true) then
    return false
  end
  local word = how ~= '' and how or status ~= '-' and status or 'released'
  if word == 'lost' or #word > 20 then return false end
  read_meta()
  local line, granted = meta.running, meta.success:match('^(%d+) [^\n]* $')
  local is_latest = meta.success == '' or granted and tonumber(granted) <= r.acquired
  if line:sub(1, #token + 1) ~= token .. ' ' or line:find('\n', 1, true) or not is_latest then return false end
  call('DEL', LOCK) -- first: a server that is out of memory allows it, and then every write after it
  note('running', '')
  if is_failure(word) and not excused then count('failed') end
  if word == '0' then note('success', r.acquired .. ' ' .. now .. ' ' .. r.tail .. ' ') end
  local has_waiters = call('EXISTS', QUEUE) == 1
  if not has_waiters then write_meta() end
  push_entries(format_entry(r.fence, r.acquired, now, r.waited, cap, word, r.tail))
  call('SET', LEVEL_END, 'r', 'PX', ENDED_FOR)
  return true, has_waiters
end

local is_released, has_waiters = release_plainly()
if is_released and not has_waiters then return {'released'} end

-- NEEDS queue late leave
local all = level:sub(1, 1) == '*'
local request = all and level:sub(2) or level -- what it is remembered by

local function ended(r)
  local reply = r and r.cools > now and {'cooling', num(r.cools - now)} or {'released'}
  local attempts, last = failed_attempts(r and r.tail or '')
  if last and last.fence == num(r.fence) then reply[#reply + 1] = num(attempts) end
  return reply
end

local function is_repeated()
  if all then return request ~= '' and call('GET', TOKEN_END) == request end
  return call('GET', LEVEL_END) == 'r' or call('EXISTS', TOKEN_END) == 1
end

-- Records how an acquisition that no longer holds really ended: one that ended by itself keeps its success.
local function set_right()
  local cause = how == '' and status == '-' and 'lost' or how
  local run = strike(token)
  if run then
    local code, its_cause, its_excuse = end_of_first(run)
    if not code then code, its_cause, its_excuse = status, cause, excused end
    record_end(run, now, code, its_cause, its_excuse)
  else
    run = take_death(token)
    if run then correct_end(run, status, cause, excused) end
  end
  if run then serve_next() end
end

-- An acquire that is still on its way takes nothing.
local function report_late()
  keep_memory() -- first: a server that is out of memory allows it, and then every write after it
  if is_inner then bury_dead() else set_right() end
  commit()
  if not all then redis.pcall('SET', LEVEL_END, 'l', 'PX', ENDED_FOR) end
  return {'lost'}
end

local function release(r)
  local reply
  local before, lease_end = r.levels, r.expires
  local goes_on = not all and leave(token, r, level)
  local is_first_level = all or has_made(before, level)
  if goes_on then
    if is_first_level and not end_of_first(r) then
      note_extra(token, r, 'end', status .. '/' .. how .. (excused and '/' or ''))
    end
    reply = {'kept', num(count_levels(r.levels))}
  else
    if is_first_level then end_run(token, r, status, how, excused) else end_run(token, r) end
    reply = ended(r)
  end
  if all then tell_levels(before, 'released') end
  if news.success and (extra(r.tail, 'once') or extra(r.tail, 'per')) then dismiss_done(0) end
  if not goes_on or r.expires < lease_end then serve_next() end
  commit()
  call('SET', all and TOKEN_END or LEVEL_END, all and request or 'r', 'PX', ENDED_FOR)
  return reply
end

if is_released then
  serve_next()
  commit()
  return {'released'}
end
load_lock()
read_meta()
local r = holder(token)
if is_live(r) then return r.is_unreadable and unreadable() or release(r) end
if is_repeated() then return ended(r) end
return report_late()
