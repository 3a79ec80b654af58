# Who leaves without the lock is counted, with the last one's holder, host and time; for a lock that was never used nothing
# is kept.

load ../support/helpers
load ../support/servers

skipped() { # REASON=COUNT...: and nothing else, by the JSON and by the metrics
  local want
  want=$(printf '%s\n' "$@" | sort | xargs)
  try status job --json
  same "$(jq -r '.[0].counters.skipped | to_entries[] | select(.value > 0) | "\(.key)=\(.value)"' <<<"$OUT" | sort | xargs)" "$want"
  same "$(rlock status --prometheus --all | sed -nE 's/^rlock_skipped_total\{key="job",reason="(.*)"\} ([1-9].*)/\1=\2/p' | sort | xargs)" "$want"
}

last_skip() { jq -c '.[0].counters.last_skip | [.reason, .holder, .host]' <<<"$OUT"; }


@test "held, timed out, done, full and superseded are counted, and who was the last" {
  local host waiter
  host=$(uname -n)
  hold job --once v1
  skipped
  same "$(last_skip)" '[null,null,null]'
  try run job -n --holder ann -- true
  exits 75
  try run job -w 0 --holder ann -- true
  exits 75
  skipped held=2
  same "$(last_skip)" "[\"held\",\"ann\",\"$host\"]"
  try run job -w 0.05 --holder bob -- true
  exits 75
  skipped held=2 timed_out=1
  matches "$(script -qec 'stty cols 200; rlock status job' /dev/null)" \
    ' skipped  3 times \(2 not free, 1 wait over\); the last: bob [0-9.]+m?s ago \(wait over\)'
  same "$(last_skip)" "[\"timed_out\",\"bob\",\"$host\"]"
  start waiter rlock run job --latest -- true
  waiter=$PID
  wait_until "$PATIENCE" waiting 1
  try acquire job --max-waiting 1 --holder eve
  exits 75
  start newer rlock run job --latest -- true
  finish "$waiter"
  exits 75
  skipped held=2 timed_out=1 full=1 superseded=1
  stop "$HOLDER"
  finish "$PID"
  try run job --once v1 -- true
  try run job --once v1 --holder joe -- true
  skipped held=2 timed_out=1 full=1 superseded=1 done=1
  same "$(last_skip)" "[\"done\",\"joe\",\"$host\"]"
  query '.[0].counters.last_skip.at | fromdateiso8601? // (sub("\\.[0-9]+Z$"; "Z") | fromdateiso8601) > 1700000000'
}

@test "the last one's reason tells a held lock from one that is on hold or cools; the count is the same" {
  try run held -- true
  hold held
  try run held -n -- true
  try run held --holder ann -n -- true
  contains "$(script -qec 'stty cols 200; rlock status held' /dev/null)" ' ago (not free: held)'
  stop "$HOLDER"
  try run job --min-hold 10m -- true
  try run job -n --holder ann -- true
  exits 75
  skipped held=1
  query '.[0].counters.last_skip.reason == "cooling"'
  try hold job --for 1h
  try run job -n --holder ann -- true
  exits 75
  skipped held=2
  query '.[0].counters.last_skip.reason == "on_hold"'
  contains "$(script -qec 'stty cols 200; rlock status job' /dev/null)" '2 times (2 not free); the last: ann '
  contains "$(script -qec 'stty cols 200; rlock status job' /dev/null)" ' ago (not free: on hold)'
}

@test "a wait that a signal ends is no skip" {
  hold job
  start waiter rlock run job -- true
  wait_until "$PATIENCE" waiting 1
  kill -TERM "$PID"
  finish "$PID"
  exits 143
  skipped
}

@test "a skip makes no key, and no write that a full server would refuse" {
  cli SET rlock:job value >/dev/null
  try run job -n -- true
  exits 75
  same "$(cli DBSIZE)" 1
  cli DEL rlock:job >/dev/null
  hold job
  cli CONFIG SET maxmemory 1 >/dev/null
  try run job -n -- true
  exits 75
  contains "$ERR" 'held by '
  cli CONFIG SET maxmemory 0 >/dev/null
  skipped
}

@test "a skip writes one field" {
  local before
  rlock acquire job >/dev/null # which nobody renews
  try run job -n -- true
  before=$(writes)
  try run job -n -- true
  exits 75
  same "$(($(writes) - before))" 1
  same "$(cli HGET '{rlock:job}:meta' skipped | cut -d ' ' -f 2)" held=2
}
# writes: how many commands that write the server has carried out
writes() {
  cli INFO commandstats |
    sed -nE 's/^cmdstat_(hset|hdel|zrem|zadd|set|pexpire|pexpireat|del|rpush):calls=([0-9]+).*/\2/p' |
    awk '{sum += $1} END {print sum}'
}

@test "with several servers the largest count of each is told, also if one of them is free and grants the lock" {
  local members
  start_quorum 3
  starts_to_vote 5 # a busy machine must not end the lease
  members=$RLOCK_REDIS
  RLOCK_REDIS=${members#* } hold job --ttl 5s
  RLOCK_REDIS=$members
  try run job --ttl 1s -n --holder ann -- true
  exits 75
  try run job --ttl 1s -w 0.1 --holder bob -- true
  exits 75
  try status job --json
  query '.[0].counters.skipped.held >= 1 and .[0].counters.skipped.timed_out == 1 and .[0].counters.last_skip.holder == "bob"'
}

@test "a run that failed is counted, and not one that was told to stop" {
  local holder
  try run job -- sh -c 'exit 3'
  try run job --ttl 1s -- sh -c 'kill -KILL $$'
  try run job --max-runtime 0.01 -- sleep 600
  try run job -- true
  hold job
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  hold job
  try release job --force
  finish "$HOLDER"
  try status job --json
  query '.[0].counters.failed == 3'
  contains "$(rlock status --prometheus --all)" 'rlock_failed_total{key="job"} 3'
}
