-- release: give up one level, or all levels of a token. A repetition gets the same answer.
-- WITH  lock memory history
-- KEYS  lock queue waiters meta history
-- ARGV  token level('*' and an ID of this request: all) exit_status('-': unknown)
--       end('': the status tells, else signal:N, evicted,BY, replaced,BY, lost, timeout or released)
-- ->    released | cooling ms | kept levels | lost
local token, level, status, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local all = level:sub(1, 1) == '*'
local request = all and level:sub(2) or level -- what it is remembered by

local function ended(r)
  if r and r.cools > now then return {'cooling', num(r.cools - now)} end
  return {'released'}
end

-- Records the loss in the history, unless whoever took the lock away has done so already.
local function report_loss()
  local run = strike(token)
  if not run then return end
  keep_memory() -- a server that is out of memory allows this, and every write after it
  local code, cause = end_of_first(run)
  record_end(run, now, code or '-', cause or how ~= '' and how or 'lost')
  write_all()
end

-- Whether the level that is released made the acquisition: it is the first of the record.
local function is_first(levels) return levels:match('^[^,]*') == level end

-- An acquisition ends as the level that made it has ended, whichever is the last to leave.
local function how_it_ended(r, levels)
  local code, cause = end_of_first(r)
  if code then return code, cause end
  if all or is_first(levels) then return status, how end
  return '-', eviction_end(r) or 'died'
end

local function end_run(r, levels)
  strike(token)
  record_end(run_of(r, num(capacity)), now, how_it_ended(r, levels))
  if all then mark_released(token, r.expires) end
  if r.cools > now then r.expires = now else remove(token) end
  count_seats(capacity)
end

load_lock()
read_meta()
local r = holders[token]
if not is_live(r) then
  if request ~= '' and fate(request) == 'r' then return ended(r) end
  report_loss()
  return {'lost'}
end

local reply, before, left = ended(r), r.levels, all and '' or levels_without(r.levels, level)
if all then
  for l in before:gmatch('[^,]+') do remember(l, 'r') end
end
if request ~= '' then remember(request, 'r') end
touched[token] = true
local lease_end = r.expires
if left ~= '' then
  if is_first(before) and not end_of_first(r) then note_extra(token, r, 'end', status .. '/' .. how) end
  r.levels = left
  r.expires = last_end(r)
  count_seats(capacity)
  if not is_live(r) then left = '' end -- those inside were killed
end
if left == '' then
  end_run(r, before)
else
  reply = {'kept', num(count_levels(left))}
end
if not all and call('ZCARD', QUEUE) == 0 then
  write_all()
  return reply
end

-- WITH  grant queue
-- Tells the waiters that need no more than this success, and removes them from the queue.
local function dismiss_done()
  local texts = call('HGETALL', WAITERS)
  for i = 1, #texts, 2 do
    local w = parse_waiter(texts[i + 1])
    if w and success_for(w.tail) then
      leave_queue(texts[i])
      tell(w.level, 'done')
    end
  end
end

if all then tell_levels(before, 'released') end
if news.success and (extra(r.tail, 'once') or extra(r.tail, 'per')) then dismiss_done() end
if left == '' or r.expires < lease_end then serve_next() end
commit()
return reply
