-- recall: whether somebody else has released what a keeper believed it held. Reads only.
-- WITH  lock memory
-- KEYS  lock queue waiters meta history
-- ARGV  token level
-- ->    released | unknown
local token, level = ARGV[1], ARGV[2]
read_meta()
return {(fate(level) == 'r' or was_released(token)) and 'released' or 'unknown'}
