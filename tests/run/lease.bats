# rlock run: the command is dead before anyone else can get the lock, whatever happens to the server and the network;
# and nothing happens to the command while the lease can be kept.

load ../support/helpers
load ../support/supervision

setup() {
  hermetic
  start_redis_with_a_log
}

# ---- the server and the network

server_frozen() {
  run_witness --ttl 1 --redis-timeout 300ms -- stubborn child setsid double
  kill -STOP "$REDIS_PID"
  lost
  contains "$ERR" 'rlock: cannot renew job'
  contains "$ERR" 'rlock: could not release job'
  in_time 1000
  kill -CONT "$REDIS_PID"
  wait_until "$PATIENCE" absent rlock:job # nobody was there to release it, so it is there until its lease ends
}

@test "server frozen: 76, and all that the command started is dead before the lease ends although it ignores TERM" {
  server_frozen
}

@test "the server freezes: an ordinary user's command is dead before the lease ends too" {
  ordinary_user
  server_frozen
}

@test "server killed: all dead before the lease ends" {
  run_witness --ttl 1 --redis-timeout 300ms -- stubborn child setsid double
  kill -KILL "$REDIS_PID"
  lost
  contains "$ERR" "127.0.0.1:$REDIS_PORT"
  in_time 1000
}

@test "requests pass but replies do not: dead before the end of what was confirmed, and the lock given back" {
  start_proxy
  run_witness --ttl 1 --redis-timeout 300ms -- stubborn child setsid double
  network drop
  lost
  in_time
  wait_until "$PATIENCE" absent rlock:job
}

# handed_to_the_deaf [RUN-OPTION...]: a run that is handed key job and cannot confirm it, and whose command stamps; sets
# PID. On a busy machine the short lease may be over before the command has started: then it is done again.
handed_to_the_deaf() {
  local direct=$RLOCK_REDIS
  start_proxy
  for _ in {1..10}; do
    rm -f "$T/stamps"
    network pass
    RLOCK_REDIS=$direct hold job
    start job rlock run --key job --redis-timeout 300ms "$@" -- \
      python3 "$HERE/witness.py" stamp "$T/stamps" stubborn child setsid double
    wait_until "$PATIENCE" exists '{rlock:job}:waiters'
    network deaf
    kill -TERM "$HOLDER"
    wait_until "$PATIENCE" says_ready_or_gone "$PID"
    ! grep -q ready "$T/job.out" || return 0
    finish "$PID"
    finish "$HOLDER"
  done
  fail "$(<"$T/job.err")"
}

@test "a lock that is handed over and cannot be confirmed: all dead before its short lease is over" {
  handed_to_the_deaf
  lost
  contains "$ERR" 'rlock: cannot renew job'
  in_time 1000
}

@test "replies later than an attempt may take: the command ends inside the lease that it was started with" {
  try run --key warm-up -- true # the server learns the scripts
  start_proxy
  network delay 1
  run_witness --ttl 5 -- setsid
  lost
  contains "$ERR" 'a lease of 5s is short for this network'
  in_time
  wait_until "$PATIENCE" absent rlock:job
}

@test "replies that take almost as long as an attempt: a renewal counts from when it was sent" {
  try run --key warm-up -- true
  start_proxy
  network delay 0.45
  run_witness -v --ttl 5 -- stubborn setsid
  wait_for_text 'renewed job' "$T/job.err"
  network deaf # the server extends the lease no more
  lost
  in_time
}

@test "replies later than the lease: the command is never started on a dead one" {
  start_proxy
  network delay 0.7
  for _ in {1..20}; do # on a busy machine the answer may also come too late for an attempt
    try run --key job --ttl 600ms -w 500ms -- touch "$T/ran"
    exits 69
    [[ ! -e $T/ran ]]
    [[ $ERR != *'too late'* ]] || break
  done
  contains "$ERR" 'too late'
  wait_until "$PATIENCE" absent rlock:job
}

cancels() { sed -n 's/^cmdstat_eval:calls=\([0-9]*\),.*/\1/p' <(cli INFO commandstats); } # cancel is sent with EVAL

cancelled() { (($(cancels) + 0 > 0)); }

@test "a late grant is given back; a cancel that arrives much later does not take the lock that was acquired since" {
  try run --key warm-up -- true
  start_proxy
  network delay 2.2
  write_script patient "echo ready; until [ -e '$T/end' ]; do sleep .02; done"
  start job rlock run -v --key job --ttl 3 --redis-timeout 5s -- "$T/patient"
  wait_held job
  network detain
  wait_for_text 'could not leave the queue' "$T/job.err"
  wait_for_text ready "$T/job.out"
  cli CONFIG RESETSTAT
  network pass
  wait_until "$PATIENCE" cancelled
  try run --nonblock --key job -- true
  exits 75
  touch "$T/end"
  finish "$PID"
  exits 0
  [[ $(<"$T/job.err") != *lost* ]]
  absent rlock:job
}

undisturbed() { # lets the command of `run_until_end` end; it must end by itself, with the lease kept
  wait_for_text "job is renewed again after" "$T/job.err"
  touch "$T/end"
  finish "$PID"
  exits 0
  same "$(<"$T/job.out")" $'ready\ndone'
  contains "$(<"$T/job.err")" 'rlock: cannot renew job'
  same "$(wc -l <"$T/job.err")" 2
  absent rlock:job
}

run_until_end() { # a run whose command notes every signal, and ends when told by a file
  write_script patient "trap 'echo disturbed' TERM INT HUP CONT
    echo ready; until [ -e '$T/end' ]; do sleep .02; done; echo done"
  start job rlock run --key job "$@" -- "$T/patient"
  wait_for_text ready "$T/job.out"
}

@test "an outage shorter than the budget leaves the command undisturbed, and is reported in two lines" {
  run_until_end --ttl 3
  kill -STOP "$REDIS_PID"
  wait_for_text 'cannot renew job' "$T/job.err"
  kill -CONT "$REDIS_PID"
  undisturbed
}

@test "a dead connection is replaced, and the command is undisturbed" {
  start_proxy
  run_until_end --ttl 3
  network strand
  undisturbed
}

@test "connections that the server closes are replaced, and the command is undisturbed" {
  local i
  run_until_end --ttl 1 -v
  for i in 1 2 3; do
    wait_until "$PATIENCE" renewed "$i"
    cli CLIENT KILL TYPE normal >/dev/null
  done
  wait_until "$PATIENCE" renewed 4
  touch "$T/end"
  finish "$PID"
  exits 0
  same "$(<"$T/job.out")" $'ready\ndone'
}

@test "a standard error that nobody reads does not cost the lease" {
  mkfifo "$T/pipe"
  exec 8<>"$T/pipe"
  dd if=/dev/zero of="$T/pipe" oflag=nonblock bs=4096 status=none 2>/dev/null || true # until it is full
  start job sh -c 'exec rlock run --key job --ttl 6 --renew-every 1s --redis-timeout 300ms -- \
    sh -c "echo ready; sleep 8; echo done" 2>"$0"' "$T/pipe"
  wait_for_text ready "$T/job.out"
  kill -STOP "$REDIS_PID"
  sleep 1.5 # an attempt has failed by now, and its line was to be written
  kill -CONT "$REDIS_PID"
  wait_for_text "done" "$T/job.out" || true
  cat <&8 >/dev/null &
  RUNNING+=("$!")
  finish "$PID"
  exits 0
}

# ---- somebody takes the lock away

@test "a lock broken by force is lost at once: stopped long before its lease would have ended" {
  run_witness --ttl 3 --kill-after 200ms -- stubborn child setsid double
  try release job --force
  exits 0
  lost
  in_time
  python3 "$HERE/witness.py" margin "$T/stamps" "${REDIS_SOCK%/*}" rlock:job >"$T/margin"
  (($(<"$T/margin") > 1000)) || fail "stopped only $(<"$T/margin") ms before the end"
  same "$(grep -c . "$T/job.err")" 1
  absent rlock:job
}

@test "a key that somebody else holds by now is not touched" {
  run_witness --ttl 1 -- child
  cli EVAL "redis.call('DEL', KEYS[1]) redis.call('SET', KEYS[1], 'theirs')" 1 rlock:job
  lost
  same "$(cli GET rlock:job)" theirs
  same "$(cli PTTL rlock:job)" -1
}

# Whether the command itself has released the lock is asked only then; that question fails here.
cannot_tell() { network forge '*1\r\n$7\r\nunknown' '-LOADING\x20later'; }

@test "a loss that is certain is one, though the server cannot say who released the lock" {
  start_proxy
  run_witness --ttl 6 --kill-after 200ms -- child
  cannot_tell
  cli DEL rlock:job
  lost
  same "$(grep -c 'cannot renew' "$T/job.err")" 0
  same "$(grep -c 'lost job' "$T/job.err")" 1
}

@test "a loss that the release finds is told and reported, though the server cannot say who released the lock" {
  start_proxy
  run_until_end -v --ttl 60 --report "$T/report"
  wait_until "$PATIENCE" renewed 1 # which confirms the first, short lease, and would find the loss
  cannot_tell
  cli DEL rlock:job
  touch "$T/end"
  finish "$PID"
  exits 0
  same "$(jq -r .outcome "$T/report")" lost
  contains "$(<"$T/job.err")" 'job was no longer held when the command ended, so another may have run beside it'
  same "$(grep -c 'could not release' "$T/job.err")" 0
}

@test "a lost lock is never created again" {
  run_witness --ttl 1 -- child
  cli FLUSHALL
  cli CONFIG RESETSTAT
  lost
  same "$(cli EXISTS rlock:job)" 0
  [[ $(cli INFO commandstats) != *cmdstat_hset:* ]]
}

@test "a release whose reply is lost, twice, is asked for again" {
  start_proxy
  run_until_end -v
  wait_until "$PATIENCE" renewed 1 # which confirms the first, short lease
  network cut 2
  touch "$T/end"
  finish "$PID"
  exits 0
  same "$(grep -c 'could not' "$T/job.err")" 0
  absent rlock:job
}

# ---- options

@test "options that leave no room to keep the promise are refused with the sum" {
  refuses 64 '1s from TERM to KILL + 0.1s margin = 1.633s, more than the 0.988s that can be relied on' \
    run --key job --ttl 1 --kill-after 1 -- touch "$T/ran"
  refuses 64 '--renew-every 0.9s does not fit into --ttl 1s: 0.9s to the next renewal + 2 x 0.1s to try it twice + ' \
    run --key job --ttl 1 --renew-every 900ms -- touch "$T/ran"
  refuses 64 '--kill-after 30s does not fit into --ttl 30s: ' run --key job --kill-after 30 -- touch "$T/ran"
  refuses 64 '--renew-every 10s and --kill-after 20s do not fit into --ttl 30s: ' \
    run --key job --renew-every 10 --kill-after 20 -- touch "$T/ran"
  [[ ! -e $T/ran ]]
  refuses 64 '; --kill-after may be at most 14.198s' run --key job --kill-after 1h -- true
  refuses 64 '; --renew-every may be at most 19.198s' run --key job --renew-every 1h -- true
  try run --key job --renew-every 19198ms -- true
  exits 0
  try run --key job --kill-after 14198ms -- true
  exits 0
  try run --key job --ttl 1 --kill-after 300ms -- true
  exits 0
}

@test "--renew-every: the lease is renewed at that interval" {
  local begin
  begin=$(now_ms)
  start job rlock run --key job -v --ttl 30 --renew-every 50ms -- sleep 600
  wait_until "$PATIENCE" renewed 4
  (($(now_ms) - begin < 9000)) || fail "it took $(($(now_ms) - begin)) ms"
}

renewed() { (($(grep -c '^rlock: .*renewed job' "$T/job.err") >= $1)); }

@test "--signal and --kill-after: which signal comes first, and how long it has" {
  write_script heeds 'trap "echo int; sleep .2; echo end; exit 3" INT; echo ready; while :; do sleep .02; done'
  start job rlock run --key job --ttl 2 --signal INT --kill-after 600ms -- "$T/heeds"
  wait_for_text ready "$T/job.out"
  cli DEL rlock:job
  finish "$PID"
  exits 76
  same "$(<"$T/job.out")" $'ready\nint\nend'
}

@test "--on-lost warn: the command goes on, the status is its own, and one warning is printed" {
  run_until_end --ttl 600ms --on-lost warn
  kill -STOP "$REDIS_PID"
  wait_for_text 'lost job: it could not be renewed in time' "$T/job.err" # at the end of the lease, which nobody hears of
  sleep 0.7                                                              # a whole lease more, on the server
  kill -CONT "$REDIS_PID"
  sleep 0.3 # attempts would go on if they did
  touch "$T/end"
  finish "$PID"
  exits 0
  same "$(<"$T/job.out")" $'ready\ndone'
  matches "$(grep -v "short for this network" "$T/job.err")" $'^rlock: cannot renew job[^\n]*\nrlock: lost job[^\n]*the command goes on, and others may get the lock$'
  absent rlock:job
}

@test "--max-runtime: 124 when the time is over, however the command reacts to TERM, and the lock is released" {
  write_script heeds 'trap "echo term; exit 0" TERM; while :; do sleep .02; done'
  try run --key job --max-runtime 200ms -- "$T/heeds"
  exits 124
  same "$OUT" term
  contains "$ERR" 'rlock: job: --max-runtime 200ms is over'
  absent rlock:job
  run_witness --max-runtime 3s --kill-after 200ms -- stubborn child setsid double
  finish "$PID"
  exits 124
  absent rlock:job
  try run --key job --max-runtime 10 -- sh -c 'exit 5'
  exits 5
  same "$ERR" ''
}

@test "a lease that is lost before --max-runtime is over: 76" {
  start job rlock run --key job --ttl 1 --max-runtime 30 -- sleep 600
  wait_held job
  cli DEL rlock:job
  finish "$PID"
  exits 76
}

@test "the reply to acquire is lost: asked again, it is the same acquisition" {
  start_proxy
  rlock status absent || (($? == 1)) # the server has been reached, but does not know the scripts
  network cut
  try run --key job -- sh -c 'echo $RLOCK_FENCE; rlock status job --json'
  exits 0
  same "$(jq -r '.[0].holders[0].count' <<<"${OUT#*$'\n'}")" 1
  same "$(jq -r '.[0].holders[0].fence' <<<"${OUT#*$'\n'}")" "${OUT%%$'\n'*}"
  absent rlock:job
}

@test "a command that is being stopped gets no more time from renewals" {
  start job rlock run --key job --ttl 60 --renew-every 50ms --max-runtime 300ms --kill-after 1s -- \
    sh -c 'trap "" TERM; while :; do sleep 0.02; done'
  finish "$PID"
  exits 124
  [[ $(<"$T/job.err") != *'guard process'* ]] || fail "$(<"$T/job.err")" # the keeper had to do its work
}

@test "guard stopped before the first renewal: the keeper ends the command within the short lease, however long the ttl" {
  handed_to_the_deaf --ttl 100s
  freeze "$(guard_of "$PID")"
  lost
  in_time
}

@test "--max-runtime on a lock that was handed over and cannot be confirmed: the guard kills before its end" {
  handed_to_the_deaf --max-runtime 3s
  finish "$PID"
  in_time
  [[ $(<"$T/job.err") != *'guard process did not'* ]] || fail "$(<"$T/job.err")"
}
