# The release at the end of a run, while Redis is away: it is tried for as long as the lease lasts, so that neither the
# lock stays taken nor a success is forgotten.

load ../support/helpers

# run_until_freeze RUN-OPTION...: a run with a whole lease that ends while Redis stands still; sets PID, and returns when
# it waits
run_until_freeze() {
  # shellcheck disable=SC2016 # for the inner shell
  start job rlock run -k job -v "$@" -- sh -c 'until [ -e "$0/end" ]; do sleep .02; done' "$T"
  wait_for_text 'renewed job' "$T/job.err"
  kill -STOP "$REDIS_PID"
  touch "$T/end"
  wait_for_text 'job is not released yet: ' "$T/job.err"
}

@test "a release waits for a Redis that is away for longer than an answer may take, and the success counts" {
  run_until_freeze --once-per 20h
  sleep 2.5 # the subject: an answer may take 2 s
  kill -CONT "$REDIS_PID"
  finish "$PID"
  exits 0
  same "$(grep -c 'could not release' "$T/job.err")" 0
  absent rlock:job
  try run -k job --once-per 20h -- echo again
  exits 0
  same "$OUT" ''
  try log job --json
  query '.[0].exit_status == 0'
}

@test "a release waits for a Redis that is started again" {
  local dir=$REDIS_SOCK
  cli CONFIG SET appendonly yes appendfsync always >/dev/null || cli CONFIG SET appendonly yes >/dev/null
  # shellcheck disable=SC2016 # for the inner shell
  start job rlock run -k job -v -- sh -c 'until [ -e "$0/end" ]; do sleep .02; done' "$T"
  wait_for_text 'renewed job' "$T/job.err"
  kill -KILL "$REDIS_PID"
  wait_until "$PATIENCE" gone "$REDIS_PID"
  touch "$T/end"
  wait_for_text 'job is not released yet: ' "$T/job.err"
  sleep 1.5 # the subject, as above
  REDIS_SOCK=$dir
  try_port "$REDIS_PORT" --appendonly yes
  SERVERS+=("$REDIS_PID")
  finish "$PID"
  exits 0
  same "$(grep -c 'could not release' "$T/job.err")" 0
  absent rlock:job
}

is_interrupted_by() { # SIGNAL
  run_until_freeze --ttl 60
  kill -"$1" "$PID"
  wait_until 5 gone "$PID"
  finish "$PID"
  exits 0
  contains "$(<"$T/job.err")" "rlock: could not release job: interrupted by SIG$1; it stays taken until its lease ends, in 5"
}

@test "TERM ends the wait of a release; the status is the command's, and one line says until when the lock stays taken" {
  is_interrupted_by TERM
}

@test "INT ends the wait of a release" {
  is_interrupted_by INT
}

gives_up() { # RUN-OPTION...
  run_until_freeze --ttl 4 "$@"
  finish "$PID"
  exits 0
  kill -CONT "$REDIS_PID"
  rm "$T/end"
  SAID=$(<"$T/job.err")
  rm "$T/job.err"
  SAID=$(grep 'could not release' <<<"$SAID")
  wait_until "$PATIENCE" absent rlock:job
}

@test "the release is given up when the lease is over" {
  gives_up
  matches "$SAID" '^rlock: could not release job: .*; it stays taken until its lease ends, in [0-9]+ms at [-0-9]+ [0-9:]+$'
}

@test "a success that Redis could not be told of is said to be forgotten, and what was to be done once is done again" {
  gives_up --once-per month
  matches "$SAID" "; that $(date +%Y-%m) is done could not be recorded, so it may be run again$"
  gives_up --once-per 20h
  matches "$SAID" '; that it was done could not be recorded, so it may be run again$'
  gives_up --once v1
  matches "$SAID" '; that v1 is done could not be recorded, so it may be run again$'
  try run job --once v1 -- echo again
  same "$OUT" again
}

@test "a failure that could not be recorded is not said to be forgotten" {
  # shellcheck disable=SC2016 # for the inner shell
  start job rlock run -k job -v --ttl 4 --once v1 -- sh -c 'until [ -e "$0/end" ]; do sleep .02; done; exit 3' "$T"
  wait_for_text 'renewed job' "$T/job.err"
  kill -STOP "$REDIS_PID"
  touch "$T/end"
  finish "$PID"
  exits 3
  kill -CONT "$REDIS_PID"
  contains "$(<"$T/job.err")" 'could not release job'
  same "$(grep -c 'could not be recorded' "$T/job.err")" 0
}

@test "the process of --hold-pid waits for a Redis that is away, too" {
  start script sh -c 'rlock acquire job --hold-pid $$ --ttl 60s >/dev/null && echo ready && until [ -e "$0/end" ]; do sleep .02; done' "$T"
  wait_for_text ready "$T/script.out"
  kill -STOP "$REDIS_PID"
  touch "$T/end"
  finish "$PID"
  exits 0
  sleep 3.5 # the subject, as above
  kill -CONT "$REDIS_PID"
  wait_until 10 absent rlock:job
}

@test "rlock release waits for a Redis that takes its request and does not answer" {
  try acquire job --ttl 60s
  kill -STOP "$REDIS_PID"
  RLOCK_TOKEN=$OUT start release rlock release job
  wait_for_text 'job is not released yet: ' "$T/release.err"
  sleep 2.5 # the subject, as above
  kill -CONT "$REDIS_PID"
  finish "$PID"
  exits 0
  absent rlock:job
}
