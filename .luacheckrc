-- The scripts run inside Redis, each put behind common.lua: a verb may use whatever that declares at its top level.
std = 'lua51'
max_line_length = 120
read_globals = {'redis', 'KEYS', 'ARGV'}

local shared = {}
for line in io.lines('src/lock/common.lua') do
  local names = line:match('^local function ([%w_]+)') or line:match('^local ([%w_, ]+)')
  for name in (names or ''):gmatch('[%w_]+') do shared[#shared + 1] = name end
end

files['src/lock/*.lua'] = {globals = shared}
files['src/lock/common.lua'] = {not_globals = shared, ignore = {'2.1'}} -- 2.1: not used within this file
