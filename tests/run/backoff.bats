# --backoff: after a failure nobody is granted the lock for a while, longer after each further one. --attempts: after some
# failures of an ID or slot nobody tries again.

load ../support/helpers
load ../support/servers
load ../support/supervision


fail_with() { # STATUS [OPTION...]
  try run job "${@:2}" -- sh -c "exit $1"
  exits "$1"
}

cooling() { rlock status job --json | jq '.[0] | if .state == "cooling" then .cooling_ms else 0 end'; }

pass() { cli DEL rlock:job >/dev/null; } # as if the lock had cooled

@test "a failed run leaves the lock cooling, twice as long after each further one, and a success resets that" {
  local i want=(1000000 2000000 3000000 3000000) host
  host=$(uname -n)
  for i in 0 1 2 3; do
    fail_with 3 --backoff 1000s..3000s
    (($(cooling) > want[i] - 60000 && $(cooling) <= want[i])) || fail "failure $i: $(cooling)"
    try run job -n -- true
    exits 75
    rlock status job --json >"$T/json"
    same "$(jq -c '.[0].holders[0].cooling_after' "$T/json")" "{\"failures\":$((i + 1)),\"end\":\"exited\",\"exit_status\":3}"
    matches "$ERR" "^rlock: job not acquired: cooling for [0-9hms]+ after $((i + 1)) failures?, last exit 3 on $host; \`rlock status job\` on a terminal shows the command that ends that$"
    pass
  done
  try run job -- true
  fail_with 4 --backoff 1000s..3000s
  (($(cooling) <= 1000000)) || fail "$(cooling)"
}

@test "a command that cannot be started is no failure: another machine may have what it needs" {
  printf '#!/no/such/interpreter\n' >"$T/script"
  chmod +x "$T/script"
  try run job --once v1 --attempts 1 --backoff 1h -- "$T/script"
  exits 127
  same "$(cooling)" 0
  same "$(rlock status job --json | jq '.[0].counters.failed')" 0
  try run job -n --once v1 --attempts 1 --backoff 1h -- echo ran
  exits 0
  same "$OUT" ran
  same "$(rlock log job --failed --json | jq -c 'map(.exit_status)')" '[127]'
}

@test "release --force ends the cooling, of a waiter too, as the message says" {
  fail_with 3 --backoff 1h
  start waiter rlock run job -- echo ran
  wait_for_text '; `rlock status job` on a terminal shows the command that ends that' "$T/waiter.err"
  try release job --force
  exits 0
  finish "$PID"
  same "$(<"$T/waiter.out")" ran
}

@test "a signal, a timeout and a death are failures; a run that was told to stop, or that succeeds, is none" {
  local lasted
  try run job --backoff 1h -- sh -c 'kill -KILL $$'
  (($(cooling) > 0)) || fail 'a signal'
  try run job -n -- true
  contains "$ERR" 'last SIGKILL on'
  pass
  try run job --backoff 1h --max-runtime 0.01 -- sleep 600
  (($(cooling) > 0)) || fail 'a timeout'
  pass
  start holder rlock run job --ttl 1 --backoff 1h -- sleep 600
  wait_held job
  kill -KILL "$PID"
  try run job -w 3 -- true
  exits 75
  contains "$ERR" 'last died on'
  try run job -n -- true
  exits 75
  pass
  try run job -- true
  exits 0
  hold job --backoff 1h
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  hold job --backoff 1h
  try release job --force
  finish "$HOLDER"
  try run job --backoff 1h -- true
  try run job -n -- echo ran
  same "$OUT" ran
}

@test "status, log and check can read what a run that was killed with its guard has left" {
  local options
  for options in '' --shared '--slots 3' '--min-hold 2s'; do
    # shellcheck disable=SC2086 # words
    hold job --ttl 1s --backoff 1h $options
    # shellcheck disable=SC2046 # words
    kill -KILL "$HOLDER" $(family_of "$HOLDER")
    wait_until "$PATIENCE" absent rlock:job # whoever looks first finds out that it has died
    try status job
    exits 0
    contains "$OUT" cooling
    rlock status job --json | jq -e '.[0].holders[0].cooling_after.end == "died"'
    rlock status --prometheus | grep -q rlock_held
    rlock log job --json | jq -e '.[-1].end == "died"'
    try check
    exits 0
    try run job -n -- true
    exits 75
    pass
    rlock run job -- true
  done
}

@test "waiters wait until it has cooled, readers and slots too" {
  fail_with 3 --backoff 1s
  try run job -- echo ran
  same "$OUT" ran
  ((TOOK > 500)) || fail "$TOOK"
  fail_with 3 --shared --backoff 1h
  try run job --shared -n -- true
  exits 75
  pass
  fail_with 3 --slots 3 --backoff 1h
  try run job --slots 3 -n -- true
  exits 75
}

@test "whoever waits while a run fails is not handed the lock" {
  start holder rlock run job --backoff 1h -- sh -c 'until [ -e "$0" ]; do sleep 0.02; done; exit 3' "$T/go"
  wait_held job
  start waiter rlock run job -w 2 -- echo never
  wait_until "$PATIENCE" waiting 1
  touch "$T/go"
  finish "$PID"
  exits 75
  same "$(<"$T/waiter.out")" ''
}

@test "after so many attempts of an ID or slot the others leave, and another ID goes on" {
  local i host
  host=$(uname -n)
  for i in 1 2 3; do fail_with 3 --once-per day --attempts 3; done
  try run job --once-per day --attempts 3 -- echo never
  exits 75
  matches "$ERR" "^rlock: job: 3 attempts failed, last exit 3 on $host [0-9.]+m?s ago; a run without --attempts makes one more, after any cooling$"
  try run job --once-per day --attempts 3 -E 0 -q -- echo never
  exits 0
  same "$OUT$ERR" ''
  same "$(rlock status job --json | jq -c '.[0].counters.skipped.attempts')" 2
  try release job --force
  exits 1 # that does not try it again
  try run job --once-per day -- echo ran
  same "$OUT" ran
  fail_with 3 --once v1 --attempts 1
  try run job --once v2 --attempts 1 -- echo ran
  same "$OUT" ran
}

@test "a failed attempt says which it was and when the next may begin, and the last that no more are made, also with -q" {
  local day
  day=$(date +%F)
  try run job --once-per day --attempts 3 -- sh -c 'exit 3'
  exits 3
  same "$ERR" "rlock: job: attempt 1 of 3 for $day failed"
  try run job --once-per day --attempts 3 --backoff 1h -q -- sh -c 'exit 3'
  same "$ERR" ''
  pass
  try run job --once-per day --attempts 4 --backoff 1h --report "$T/report" -- sh -c 'exit 3'
  same "$ERR" "rlock: job: attempt 3 of 4 for $day failed; the next may begin in 4h00m"
  same "$(jq .message "$T/report")" null
  start_quorum 3
  try run job --ttl 1s --once v1 --attempts 1 --backoff 1h -q -- sh -c 'exit 3'
  exits 3
  same "$ERR" 'rlock: job: 1 attempt for v1 failed, and no more are made'
  try run spaced --ttl 1s --once-per 1h --attempts 1 -q -- sh -c 'exit 3'
  same "$ERR" 'rlock: spaced: 1 attempt failed, and no more are made for now'
}

@test "a run inside another one does not take the failure of that for its own" {
  start outer rlock run job --once x --attempts 5 -- sh -c 'rlock run job --once x --attempts 1 -- sh -c \
    "touch \"$0\"; until [ -e \"$1\" ]; do sleep 0.02; done" & until [ -e "$0" ]; do sleep 0.02; done; exit 3' "$T/in" "$T/go"
  finish "$PID"
  exits 3
  touch "$T/go"
  wait_until "$PATIENCE" absent rlock:job
  same "$(grep attempt "$T/outer.err")" ''
}

@test "a run that was told to stop is no attempt, and is made again" {
  local signal
  for signal in TERM HUP QUIT; do
    hold job --once v1 --attempts 1
    kill "-$signal" "$HOLDER"
    finish "$HOLDER"
    same "$(grep attempt "$T/holder.err")" ''
  done
  hold job --once v1 --attempts 1
  try release job --force
  finish "$HOLDER"
  try run job --once v1 --attempts 1 -- echo again
  same "$OUT" again
  try run --help
  contains "$(tr -s ' \n' ' ' <<<"$OUT")" 'runs that were told to stop do not count'
}

@test "a run that outlives a HUP, read its configuration again, and fails later, has failed" {
  start holder rlock run job --once v1 --attempts 1 --kill-after 100ms -- \
    sh -c 'trap "echo again; sleep 2; exit 3" HUP; echo ready; while :; do sleep .1; done'
  wait_for_text ready "$T/holder.out"
  kill -HUP "$PID"
  finish "$PID"
  exits 3
  try run job --once v1 --attempts 1 -- echo again
  exits 75
  contains "$ERR" 'last exit 3'
}

@test "those that wait for the same work leave when the last attempt has failed" {
  start holder rlock run job --once v1 --attempts 1 -- sh -c 'until [ -e "$0" ]; do sleep 0.02; done; exit 3' "$T/go"
  wait_held job
  start waiter rlock run job --once v1 --attempts 1 -- echo never
  wait_until "$PATIENCE" waiting 1
  touch "$T/go"
  finish "$PID"
  exits 75
  contains "$(<"$T/waiter.err")" 'job: 1 attempt failed, last exit 3 on'
}

@test "a late end that is a success takes back what a death has left" {
  local token
  hold job --ttl 1 --backoff 1h --on-lost warn
  token=$(cli HKEYS rlock:job | grep -E '^.{32}$')
  kill -STOP "$HOLDER"
  wait_until "$PATIENCE" absent rlock:job
  try run job -n -- true
  exits 75
  cli HEXISTS rlock:job "$token" | grep -qx 1
  cli --eval <(rlock __script release) rlock:job '{rlock:job}:queue' '{rlock:job}:waiters' '{rlock:job}:meta' \
    '{rlock:job}:history' '{rlock:job}:seats' '{rlock:job}:ended:a' "{rlock:job}:ended:$token" , "$token" a 0 '' >/dev/null
  try run job -n -- echo ran
  same "$OUT" ran
  kill -KILL "$HOLDER"
}

@test "with several servers one that knows of the failure is enough, unless another knows of a later success" {
  local port
  start_quorum 3
  fail_with 3 --ttl 1s --once v1 --attempts 1 --backoff 50s
  for port in "${QUORUM_PORTS[@]:1}"; do cli_at "$port" FLUSHALL >/dev/null; done
  try run job --ttl 1s -n -- true
  exits 75
  contains "$ERR" 'after 1 failure, last exit 3 on'
  cli_at "${QUORUM_PORTS[0]}" DEL rlock:job >/dev/null
  try run job --ttl 1s --once v1 --attempts 1 -- true
  exits 75
  contains "$ERR" '1 attempt failed'
}

@test "with several servers readers wait for a lock that cools, though another reader has succeeded meanwhile" {
  local failing
  start_quorum 3
  start fails rlock run job --ttl 1s --shared --backoff 3s -- \
    sh -c 'touch "$0.began"; until [ -e "$0" ]; do sleep 0.02; done; exit 3' "$T/go"
  failing=$PID
  wait_until "$PATIENCE" test -e "$T/go.began"
  try run job --ttl 1s --shared -- true
  exits 0
  touch "$T/go"
  finish "$failing"
  exits 3
  try run job --ttl 1s --shared -n -- true
  exits 75
  contains "$ERR" 'cooling for'
  try run job --ttl 1s --shared -- echo ran
  same "$OUT" ran
}

@test "what makes no sense is refused with what to write" {
  refuses 64 '--backoff: 4h is longer than 15m; write 15m..4h' run job --backoff 4h..15m -- true
  refuses 64 '--backoff' run job --backoff ..4h -- true
  refuses 64 '--backoff' run job --backoff 0 -- true
  refuses 64 'write --once ID or --once-per day' run job --attempts 3 -- true
  refuses 64 '--attempts' run job --once v1 --attempts 0 -- true
}
