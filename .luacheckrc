-- The scripts run inside Redis, with the parts in place of the WITH lines that name them: each may use whatever those declare
-- at their top level.
std = 'lua51'
max_line_length = 120
read_globals = {'redis', 'KEYS', 'ARGV'}

local function declared_by(part)
  local found = {}
  for line in io.lines('src/lock/' .. part .. '.lua') do
    local names = line:match('^local function ([%w_]+)') or line:match('^local ([%w_, ]+)')
    for name in (names or ''):gmatch('[%w_]+') do found[#found + 1] = name end
  end
  return found
end

local parts, shared = {'lock', 'memory', 'history', 'grant', 'queue'}, {}
for _, part in ipairs(parts) do
  for _, name in ipairs(declared_by(part)) do shared[#shared + 1] = name end
end

for file in io.popen('ls src/lock/*.lua'):lines() do
  local usable = {}
  for line in io.lines(file) do
    for part in (line:match('^%-%- WITH (.*)') or ''):gmatch('%w+') do
      for _, name in ipairs(declared_by(part)) do usable[#usable + 1] = name end
    end
  end
  files[file] = {globals = usable}
end
for _, part in ipairs(parts) do -- 2.1: not used within this file
  files['src/lock/' .. part .. '.lua'] = {globals = shared, not_globals = declared_by(part), ignore = {'2.1'}}
end
