# --first with several servers: all of them agree that it goes ahead.

load ../support/helpers
load ../support/servers

setup() {
  hermetic
  start_quorum 3
  starts_to_vote 5 # a busy machine must not end a lease
}

@test "--first goes ahead of those that have waited for longer, at every server" {
  local last
  start holder rlock run job --ttl 5s -- sh -c 'until [ -e "$0" ]; do sleep 0.1; done' "$T/end"
  wait_until "$PATIENCE" rlock status job -q
  start last rlock run job --ttl 5s -- sh -c 'echo last >>"$0"' "$T/order"
  last=$PID
  wait_for_text 'waiting for job' "$T/last.err"
  start first rlock run job --ttl 5s --first -- sh -c 'echo first >>"$0"' "$T/order"
  wait_until "$PATIENCE" all_queue_two
  touch "$T/end"
  finish "$PID"
  exits 0
  finish "$last"
  exits 0
  same "$(xargs <"$T/order")" 'first last'
}

all_queue_two() {
  local port
  for port in "${QUORUM_PORTS[@]}"; do [[ $(cli_at "$port" ZCARD '{rlock:job}:queue') == 2 ]] || return 1; done
}
