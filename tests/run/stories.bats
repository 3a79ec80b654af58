# What people use rlock for, from beginning to end.

load ../support/helpers

token() { # KEY [OPTION...]: acquires and prints the token
  rlock acquire --key "$@"
}

@test "without a lock, 16 buyers sell more than there is" {
  sell 50
  (($(cli GET stock) < 0)) || fail "$(cli GET stock) left: this test can no longer tell a lock from none"
}

@test "with rlock run, 16 buyers sell exactly 500 of 500 items" {
  THINK=0 PATIENCE=300 sell 500 rlock run --key stock --
  same "$(cli GET stock)" 0
  same "$(cat "$T"/buyer*.out | sort -n | uniq | wc -l)" 500 # every number from 499 to 0 once
  same "$(cat "$T"/buyer*.out | wc -l)" 500
  same "$(cat "$T"/buyer*.err | grep -vE 'waiting for stock|stock acquired after')" ''
}

@test "a job longer than its lease keeps the lock, by renewal" {
  start job rlock run --key report --ttl 2 -- sh -c "until [ -e '$T/end' ]; do sleep 0.05; done"
  wait_held report
  try run --key report -w 2500ms -- touch "$T/ran" # beyond the lease
  exits 75
  [[ ! -e $T/ran ]]
  touch "$T/end"
  finish "$PID"
  exits 0
  try run --key report -n -- true
  exits 0
}

@test "A's token can neither release nor renew B's lock" {
  local a b
  a=$(token job --ttl 500ms)
  b=$(rlock acquire --key job -w 10)
  RLOCK_TOKEN=$a try release job
  exits 1
  RLOCK_TOKEN=$a try renew job
  exits 1
  try acquire job -n
  exits 75
  RLOCK_TOKEN=$b try release job
  exits 0
}

@test "a lock whose holder died is free after its lease, and not before" {
  local begin left
  hold job --ttl 2
  kill -KILL "$HOLDER"
  left=$(cli PTTL rlock:job)
  begin=$(now_ms)
  try run --key job -n -- true
  exits 75
  try run --key job -w 10 -- true
  exits 0
  (($(now_ms) - begin >= left - 20)) || fail "free $(($(now_ms) - begin)) ms later, with $left ms left"
}

@test "a script takes the lock, works, and gives it back" {
  cat >"$T/deploy" <<'END'
set -eu
eval "$(rlock acquire --key deploy --ttl 10m --output shell)"
trap 'rlock release' EXIT
rlock status deploy
rlock renew --ttl 20m
END
  sh "$T/deploy" >"$T/deploy.out"
  grep -q '^deploy  *x ' "$T/deploy.out"
  same "$(cli EXISTS rlock:deploy)" 0
}

@test "of ten cron jobs that start at the same moment one runs, and all exit with 0" {
  local i pids=()
  for i in {1..10}; do
    start "cron$i" rlock run --key nightly -n -E 0 -q -- sh -c "echo ran; while [ ! -e $T/over ]; do sleep .05; done"
    pids+=("$PID")
  done
  wait_until "$PATIENCE" nine_gone "${pids[@]}"
  touch "$T/over"
  for i in "${pids[@]}"; do
    finish "$i"
    exits 0
  done
  same "$(cat "$T"/cron*.out)" ran
  same "$(cat "$T"/cron*.err)" ''
}

nine_gone() {
  local pid left=0
  for pid; do gone "$pid" || left=$((left + 1)); done
  ((left == 1))
}
