-- The scripts run inside Redis, each with the parts in place of the lines that name them: it may use whatever those
-- declare at their top level, and what the parts declare that they need in turn.
std = 'lua51'
max_line_length = 120
read_globals = {'redis', 'KEYS', 'ARGV'}

local function lines_of(name) return io.lines('src/lock/' .. name .. '.lua') end

local function declared_by(name)
  local found = {}
  for line in lines_of(name) do
    local names = line:match('^local function ([%w_]+)') or line:match('^local ([%w_, ]+)')
    for each in (names or ''):gmatch('[%w_]+') do found[#found + 1] = each end
  end
  return found
end

local function add_needs(name, needs)
  for line in lines_of(name) do
    for part in (line:match('^%-%- NEEDS (.*)') or ''):gmatch('%w+') do
      if not needs[part] then
        needs[part] = true
        add_needs(part, needs)
      end
    end
  end
  return needs
end

for file in io.popen('ls src/lock/*.lua'):lines() do
  local name, is_verb, usable = file:match('(%w+)%.lua$'), false, {}
  for line in io.lines(file) do is_verb = is_verb or line:find('^%-%- KEYS') end
  for part in pairs(add_needs(name, {})) do
    for _, each in ipairs(declared_by(part)) do usable[#usable + 1] = each end
  end
  files[file] = {globals = usable}
  if not is_verb then -- 2.1, 2.3: not used within this file
    files[file] = {globals = usable, not_globals = declared_by(name), ignore = {'2.1', '2.3.', '1.1', '1.3'}}
  end
end
