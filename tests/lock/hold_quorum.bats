# rlock hold with several servers: a majority decides.

load ../support/helpers
load ../support/servers

setup() {
  hermetic
  start_quorum 3
}

@test "a majority that is on hold suffices, whichever servers are down" {
  stop "${SERVERS[0]}"
  try hold job --for 1h --holder ann@ops1
  exits 0
  try run job --ttl 1s -n -- true
  exits 75
  contains "$ERR" 'on hold until'
  try status job --json
  query '.[0].hold.by == "ann@ops1"'
  start waiter rlock run job --ttl 1s -- echo ran
  wait_for_text 'waiting for job, on hold until' "$T/waiter.err"
  try hold job --end
  exits 0
  finish "$PID"
  exits 0
  try log job
  same "$(grep -c 'on hold until' "$T/out")" 1
  same "$(grep -c 'hold ended' "$T/out")" 1
}

@test "release --force --hold leaves a longer hold of a majority alone" {
  try hold job --for 2h --holder ann@ops1
  try release job --force --hold 1h
  exits 1
  contains "$OUT" ' by ann@ops1'
  try status job --json
  query '.[0].hold.by == "ann@ops1"'
}

@test "without a majority: 69, and the message says that a minority may have the hold, or have ended it" {
  stop "${SERVERS[0]}" "${SERVERS[1]}"
  try hold job --for 1h --redis-timeout 300ms
  exits 69
  contains "$ERR" '; it may be on hold all the same: rlock status job; rlock hold job --end ends that'
  try hold job --end --redis-timeout 300ms
  exits 69
  contains "$ERR" '; the hold may have ended all the same: rlock status job'
}

@test "a minority that is on hold holds nobody back" {
  RLOCK_REDIS=${RLOCK_REDIS%% *} try hold job --for 1h
  exits 0
  try run job --ttl 1s -n -- true
  exits 0
}

@test "what runs is given back to a server that forgot it, hold or not" {
  starts_to_vote 5 # a busy machine must not end the lease
  start run rlock run job --ttl 5s --renew-every 200ms -- sh -c 'until [ -e "$0" ]; do sleep 0.1; done' "$T/end"
  wait_until "$PATIENCE" held_at "${QUORUM_PORTS[0]}"
  wait_until "$PATIENCE" held_at "${QUORUM_PORTS[1]}"
  try hold job --for 1h
  exits 0
  cli_at "${QUORUM_PORTS[0]}" DEL rlock:job >/dev/null
  wait_until "$PATIENCE" held_at "${QUORUM_PORTS[0]}"
  touch "$T/end"
  finish "$PID"
  exits 0
}

held_at() { [[ $(cli_at "$1" EXISTS rlock:job) == 1 ]]; } # PORT
