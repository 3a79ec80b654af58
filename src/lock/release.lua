-- release: give up one level, or all of a token's. Who repeats it is answered the same.
-- WITH  lock memory history queue
-- KEYS  lock queue waiters meta history
-- ARGV  token level('*' and an ID of this request: all) exit_status('-': unknown)
--       end('': as the status says, else signal:N, evicted,BY, replaced,BY, lost, timeout or released)
-- ->    released | cooling ms | kept levels | lost
local token, level, status, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local all = level:sub(1, 1) == '*'
local request = all and level:sub(2) or level -- what it is remembered by

local function ended(r)
  if r and r.cools > now then return {'cooling', num(r.cools - now)} end
  return {'released'}
end

-- Whoever took it away has told how that ended, or we do.
local function report_loss()
  local run = strike(token)
  if not run then return end
  call('PEXPIRE', META, LIFE) -- passes when memory has run out, so that the rest does
  how = how == '' and 'lost' or how
  add_entry(run, now, how)
  note_last(run, now, how)
  if how == 'lost' then count('lost') end
  commit()
end

local function give_up_levels(r)
  for l in r.levels:gmatch('[^,]+') do
    if all or l == level then remember(l, 'r') end
    if all then tell(l, 'released') end
  end
  if request ~= '' then remember(request, 'r') end
  touched[token] = true
end

-- All who wait for just this to be done need wait no more.
local function dismiss_done()
  local texts = call('HGETALL', WAITERS)
  for i = 1, #texts, 2 do
    local w = parse_waiter(texts[i + 1])
    if w and is_done(w.tail) then
      leave_queue(texts[i])
      tell(w.level, 'done')
    end
  end
end

local function note_end(r)
  strike(token)
  local run = run_of(r, num(capacity))
  local word = how ~= '' and how or status ~= '-' and status or 'released'
  add_entry(run, now, word)
  note_last(run, now, status ~= '-' and status or word)
  if word == 'lost' then count('lost') end
  if word == '0' then
    note('success', string.format('%s %.0f %s %s', r.acquired, now, run.owner, extra(r.tail, 'once') or ''))
    if extra(r.tail, 'once') or extra(r.tail, 'per') then dismiss_done() end
  end
end

load_lock()
read_meta()
local r = holders[token]
if not is_live(r) then
  if request ~= '' and fate(request) == 'r' then return ended(r) end
  report_loss()
  return {'lost'}
end

local left = all and '' or levels_without(r.levels, level)
local till, reply = r.expires, ended(r)
give_up_levels(r)
if left ~= '' then
  r.levels = left
  reply = {'kept', num(count_levels(left))}
else
  note_end(r)
  if all then mark_released(token, till) end
  if r.cools > now then
    r.expires = now
    count_seats(capacity)
  else
    remove(token)
  end
  serve_next()
end
commit()
return reply
