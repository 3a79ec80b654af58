-- Part of the verbs that deal with several levels of one token. Each has an end of its own then: one that was killed
-- must not live on the renewals of the others.

-- Where a level's entry begins and ends in a record's levels, and its end if that is noted.
local function find_level(levels, level)
  local text = ',' .. levels .. ','
  local at = text:find(',' .. level .. ',', 1, true) or text:find(',' .. level .. ':', 1, true)
  if not at then return nil end
  local last = text:find(',', at + 1, true) - 2
  return at, last, tonumber(levels:sub(at + #level + 1, last))
end

local function has_level(r, level) return find_level(r.levels, level) ~= nil end

local function count_levels(levels)
  local _, commas = levels:gsub(',', '')
  return commas + 1
end

local function each_level(levels) return levels:gmatch('([^,:]+):?%d*') end

-- A level without an end counts on the whole lease; one that is no longer alone is given that end. Those that were
-- killed leave when another comes; the first stays, since its end is that of the acquisition.
local function add_level(r, level)
  if not r.levels:find(':', 1, true) then r.levels = r.levels .. ':' .. r.expires end
  local living = r.levels:gsub(',[^,:]+:(%d+)', function(ms) return tonumber(ms) <= now and '' or nil end)
  r.levels = living .. ',' .. level .. ':0'
end

-- Notes until when a level counts on the record. Level '' is whoever renews by the token alone, for all that live.
local function note_end(r, level, till)
  if not r.levels:find(':', 1, true) then return end
  if level == '' then
    r.levels = r.levels:gsub(':(%d+)', function(ms)
      return ':' .. (tonumber(ms) > now and math.max(till, tonumber(ms)) or ms)
    end)
    return
  end
  local from, to, known = find_level(r.levels, level)
  if not from or known and known >= till then return end
  r.levels = r.levels:sub(1, from + #level - 1) .. ':' .. till .. r.levels:sub(to + 1)
end
