-- Part of the verbs that only look.
-- NEEDS history

-- Records what those find out that only look, so that a run does not seem to have died just now whenever somebody
-- looks. A user who may only read, a replica and a server that is out of memory refuse that.
local function bury_dead_if_allowed()
  bury_dead()
  lags = {} -- which is no news
  pcall(write_all)
end
