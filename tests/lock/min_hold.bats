# --min-hold: a lock that stays taken for a while after it was acquired, so that machines whose clocks differ do not run
# a job twice.

load ../support/helpers

# nightly OPTION...: does what cron does on three machines whose clocks differ; sets RAN to those that ran the job
nightly() {
  local machine pids=()
  for machine in 0 0.3 0.9; do
    start "machine$machine" sh -c 'sleep $1; shift; exec "$@"' sh $machine \
      rlock run --key nightly -n -E 0 -q --holder "cron@machine$machine" "$@" -- sh -c "echo $machine; sleep .1"
    pids+=("$PID")
  done
  for PID in "${pids[@]}"; do
    finish "$PID"
    exits 0
  done
  RAN=$(cat "$T"/machine*.out | sort | xargs)
}

@test "the nightly job of three machines runs once with --min-hold, three times without" {
  nightly --min-hold 30
  matches "$RAN" '^[0-9.]+$'
  for _ in {1..3}; do # the jobs may overlap on a machine so slow that one takes 0.3 s
    cli FLUSHALL
    nightly
    [[ $RAN != '0 0.3 0.9' ]] || return 0
  done
  fail "without it: $RAN"
}

@test "the lock stays taken until the minimum hold is over, and the run does not wait for that" {
  local begin
  try run --key other --min-hold 60 -- true # a run that waited for the minimum hold would time out
  exits 0
  begin=$(now_ms)
  try run --key job --min-hold 1 -- true
  exits 0
  try run --key job -w 10 -- true
  exits 0
  begin=$(($(now_ms) - begin))
  ((begin >= 990)) || fail "free after $begin ms"
}

@test "a minimum hold shorter than the command changes nothing" {
  try run --key job --min-hold 100ms -- sleep 0.3
  exits 0
  absent rlock:job
}

@test "a run that comes while the lock cools is told so" {
  try run --key job --min-hold 60 --holder deploy@web3 -- true
  try run --key job -n -- true
  exits 75
  matches "$ERR" 'job.*cooling for (1m0s|1m|[45][0-9](\.[0-9]+)?s) after deploy@web3$'
  start waiter rlock run --key job -- true
  wait_for_text 'waiting for job, cooling for' "$T/waiter.err"
}

@test "status shows a cooling lock, and status KEY counts it as held" {
  try run --key job --min-hold 60 --holder deploy@web3 -- sh -c 'exit 3'
  try status job --json
  exits 0
  jq -e '.[0] | .state == "cooling" and .cooling_ms > 40000 and .last.exit_status == 3 and
    .last.holder == "deploy@web3"' "$T/out"
  try status job
  exits 0
  matches "$OUT" $'\njob +cooling +deploy@web3 '
}

@test "status tells a slot that cools from one that is held" {
  try run --key job --slots 2 --min-hold 60 --holder gone@web3 -- true
  hold job --slots 2
  try status job
  matches "$OUT" $'\njob +cooling +gone@web3 +- +true +[^ ]+ +(1m0s|1m|[3-5][0-9](\.[0-9]+)?s) '
  matches "$OUT" $'\njob +1/2 +[^ ]+ +'"$HOLDER"' '
  try status job --json
  jq -e '.[0] | .state == "held" and .cooling_ms > 30000 and
    (.holders | map(.cooling_ms > 30000) == [true, false] and map(.lease_ms > 0) == [false, true])' "$T/out"
}

@test "the minimum hold counts from the acquisition, and outlasts the lease of a holder that crashed" {
  local left
  hold job --ttl 1 --min-hold 60
  kill -KILL "$HOLDER"
  sleep 1.2
  left=$(cli PTTL rlock:job)
  ((left > 40000 && left <= 58900)) || fail "$left ms left"
  try run --key job -n -- true
  exits 75
  contains "$ERR" cooling
}

@test "the minimum hold of an inner run counts" {
  try run --key job -- rlock run --key job --min-hold 60 -- true
  exits 0
  try run --key job -n -- true
  exits 75
  contains "$ERR" cooling
}

@test "a cooling reader keeps writers out, but not readers" {
  try run --key job --shared --min-hold 60 -- true
  try run --key job --shared -n -- true
  exits 0
  try run --key job -n -- true
  exits 75
}

@test "a cooling slot is not given to anybody" {
  try run --key job --slots 2 --min-hold 60 -- true
  try run --key job --slots 2 -n -- sh -c 'echo $RLOCK_SLOT'
  exits 0
  same "$OUT" 1
}

@test "a lock that was granted but not used does not cool" {
  try run --key job -- true # so that the server knows the script
  kill -STOP "$REDIS_PID"
  start interrupted rlock run --key job --min-hold 60 -- true
  wait_until "$PATIENCE" has_asked
  kill -TERM "$PID"
  kill -CONT "$REDIS_PID"
  finish "$PID"
  exits 143
  try run --key job -w 10 -- true
  exits 0
}

# Whether its request lies in the frozen server's socket.
has_asked() { ss -Htn "sport = :$REDIS_PORT" | awk '$2 > 0 {found = 1} END {exit !found}'; }

@test "a lock that rlock release gives up is cooling, and free when its minimum hold is over" {
  local token
  token=$(rlock acquire job --ttl 60 --min-hold 3)
  RLOCK_TOKEN=$token try release job
  exits 0
  try status job
  matches "$OUT" ' cooling '
  try run --key job -w 30 -- true
  exits 0
}

@test "a cooling lock can be forced" {
  try run --key job --min-hold 60 -- true
  try release job --force
  exits 0
  matches "$OUT" '^job: no longer cooling after [^ ]+$'
  try run --key job -n -- true
  exits 0
}
