# rlock run: the command and what it inherits, the lock, and what happens when somebody else holds it.

load ../support/helpers

# ---- the command

@test "the status is the command's own, or 128+n when signal n ended it, and the lock is free afterwards" {
  local code
  for code in 0 1 3 64 75 76 124 255; do
    try run --key job -- sh -c "exit $code"
    exits "$code"
    same "$OUT$ERR" ''
    absent rlock:job
  done
  for code in 1 2 9 10 15; do
    try run --key job -- sh -c "kill -$code \$\$"
    exits $((128 + code))
    same "$OUT" ''
    absent rlock:job
  done
}

@test "a command that is missing is 127, one that cannot be executed 126, and the lock is free at once" {
  touch "$T/plain"
  try run --key job -- "$T/missing"
  exits 127
  matches "$ERR" '^rlock: .*missing'
  absent rlock:job
  try run --key job -- no-such-command-in-the-path
  exits 127
  try run --key job -- ''
  exits 127
  try run --key job -- "$T/plain"
  exits 126
  matches "$ERR" '^rlock: .*plain'
  absent rlock:job
  try run --key job -- "$T"
  exits 126
  absent rlock:job
}

@test "arguments arrive byte for byte" {
  local arguments=('[a,b]' '' -x -- --ttl --key=other --help $'\xff\xfe' 'a  b' '*' '{a}' $'new\nline'
    '"' "'" "\\" '$HOME' '' --)
  write_script arguments 'printf "%s\0" "$@"'
  try run --key job -- "$T/arguments" "${arguments[@]}"
  exits 0
  printf '%s\0' "${arguments[@]}" | cmp - "$T/out"
  exists '{rlock:job}:meta' # it was this lock that was taken
}

@test "an argument of 100,000 bytes arrives" {
  local long
  long=$(printf '%100000s' '')
  try run --key job -- sh -c 'echo ${#1}' sh "$long"
  exits 0
  same "$OUT" 100000
}

@test "the command has our standard input, output and error" {
  head -c 1000000 /dev/urandom >"$T/random"
  try run --key job -- sh -c 'cat; echo said >&2' <"$T/random"
  exits 0
  cmp "$T/random" "$T/out"
  same "$ERR" said
}

@test "directory, umask, limits, signals and descriptors are as without rlock" {
  local look='pwd; umask; ulimit -a; grep ^Sig[BIC] /proc/self/status; cd /proc/self/fd; echo *'
  umask 027
  cd "$T"
  exec 7<"$T/bin"
  sh -c "$look" >"$T/without"
  rlock run --key job -- sh -c "$look" >"$T/with"
  diff "$T/without" "$T/with"
}

@test "the environment is as without rlock, but for rlock's own variables" {
  export ODD=$'two\nlines \xff' EMPTY=
  env -0 | grep -azvE '^(RLOCK_|_=)' | sort -z >"$T/without"
  rlock run --key job -- env -0 | grep -azvE '^(RLOCK_|_=)' | sort -z >"$T/with"
  cmp "$T/without" "$T/with"
}

@test "RLOCK_KEY, RLOCK_TOKEN, RLOCK_FENCE and RLOCK_TTL_MS tell the command about its lock" {
  export RLOCK_KEY=stale RLOCK_TOKEN=stale RLOCK_FENCE=1 RLOCK_TTL_MS=1 RLOCK_SLOT=7
  write_script facts '
    fence=$(rlock status --json | jq .[].holders[].fence)
    echo "$RLOCK_KEY $RLOCK_TTL_MS ${RLOCK_SLOT-none} $fence $RLOCK_FENCE"
    echo "$RLOCK_TOKEN" >"$0.token"'
  try run --key job --ttl 5 -- "$T/facts"
  exits 0
  matches "$OUT" '^job 5000 none ([0-9]+) ([0-9]+)$'
  same "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}"
  matches "$(<"$T/facts.token")" '^[0-9a-f]{32}$'
}

@test "rlock works bare inside run: same server, prefix, key and token" {
  local url=$RLOCK_REDIS
  unset RLOCK_REDIS
  try --redis "$url" --prefix app: run --key job --ttl 5 -- \
    sh -c 'rlock status --json "$RLOCK_KEY" && rlock renew --ttl 60 && '"$REDIS_CLI -s $REDIS_SOCK PTTL app:job"
  exits 0
  ((${OUT##*$'\n'} > 50000)) || fail "$OUT"
  OUT=${OUT%$'\n'*} query '.[0] | .key == "job" and .state == "held"'
}

# ---- the lock

@test "the lock is held while the command runs, and free when it has ended" {
  try run --key job -- "$REDIS_CLI" -s "$REDIS_SOCK" EXISTS rlock:job
  exits 0
  same "$OUT" 1
  absent rlock:job
}

@test "a conflict with -n: 75 or -E, the holder is named, and the command is not started" {
  hold job --holder deploy@web3
  try run --key job -n -- touch "$T/ran"
  exits 75
  same "$OUT" ''
  matches "$ERR" "^rlock: .*job.*held by deploy@web3 pid $HOLDER \"sleep 600\" for [0-9ms.]+, lease [0-9.]+s left\$"
  try run --key job -n -E 9 -- touch "$T/ran"
  exits 9
  try run --key job -n -E 0 -q -- touch "$T/ran"
  exits 0
  same "$OUT$ERR" ''
  [[ ! -e $T/ran ]]
}

@test "-w gives up after its time and names the holder" {
  hold job
  try run --key job -w 600ms -- touch "$T/ran"
  exits 75
  ((TOOK >= 600 && TOOK < 5000)) || fail "took $TOOK ms"
  matches "${ERR##*$'\n'}" "^rlock: .*held by [^ ]+ pid $HOLDER \"sleep 600\" for"
  quick 500 75 run --key job -w 0 -- touch "$T/ran"
  [[ ! -e $T/ran ]]
}

@test "-n and -w say if the holder is dead, and when the lock is free" {
  hold job --ttl 60
  # shellcheck disable=SC2046 # words
  kill -KILL "$HOLDER" $(pgrep -P "$HOLDER") || true
  wait_until "$PATIENCE" gone "$HOLDER"
  try run job -n -- true
  exits 75
  matches "$ERR" "^rlock: job not acquired: held by [^ ]+ pid $HOLDER \"sleep 600\" for [0-9ms.]+, but it has died; free in [0-9.ms]+\$"
  try run job -w 600ms -- true
  exits 75
  contains "${ERR%%$'\n'*}" ', but it has died; free in '
  contains "${ERR##*$'\n'}" ', but it has died; free in '
}

@test "a waiter says once that it waits, names the holder, and gets the lock when the holder ends" {
  hold job
  start waiter rlock run --key job -- echo mine
  wait_for_text waiting "$T/waiter.err"
  kill "$HOLDER"
  finish "$PID"
  exits 0
  same "$(<"$T/waiter.out")" mine
  matches "$(<"$T/waiter.err")" \
    "^rlock: waiting for job, held by $(id -un)@$(uname -n) pid $HOLDER \"sleep 600\" for [0-9ms.]+, lease [0-9.]+s left\$"
}

@test "INT or TERM while waiting: 128+n, the command is not started, and the holder is not disturbed" {
  local signal number
  hold job
  while read -r signal number; do
    start "waiter-$signal" rlock run --key job -- touch "$T/ran"
    wait_for_text waiting "$T/waiter-$signal.err"
    kill "-$signal" "$PID"
    finish "$PID"
    exits "$number"
  done <<<$'INT 130\nTERM 143'
  [[ ! -e $T/ran ]]
  exists rlock:job
  absent '{rlock:job}:queue'
}

@test "renewals keep the lock, and two thirds of the lease never pass without one" {
  local left
  write_script witness "for i in \$(seq 20); do sleep .2; $REDIS_CLI -s $REDIS_SOCK PTTL rlock:job; done"
  try run --key job --ttl 3s -- "$T/witness"
  exits 0
  same "$ERR" ''
  same "$(wc -l <"$T/out")" 20
  while read -r left; do ((left > 1000 && left <= 3000)) || fail "$left ms left"; done <"$T/out"
  absent rlock:job
}

@test "flushing the script cache under a held lock does no harm" {
  local redis="$REDIS_CLI -s $REDIS_SOCK"
  try run --key job --ttl 1500ms -- sh -c "sleep 1; $redis SCRIPT FLUSH; sleep 1; $redis EXISTS rlock:job"
  exits 0
  same "$OUT" $'OK\n1'
  same "$ERR" ''
  absent rlock:job
}

@test "a lock that vanishes is lost: the command is stopped, 76, and the lock is not created again" {
  local command name
  write_script patient 'trap "echo stopped; exit 0" TERM; echo ready; while :; do sleep .05; done'
  for command in FLUSHALL 'DEL rlock:job'; do
    name=${command%% *}
    start "$name" rlock run --key job --ttl 1 -- "$T/patient"
    wait_for_text ready "$T/$name.out"
    # shellcheck disable=SC2086 # a command and its argument
    cli $command
    finish "$PID"
    exits 76
    same "$(<"$T/$name.out")" $'ready\nstopped'
    contains "$(<"$T/$name.err")" 'rlock: lost job: ' # a shell may add that its sleep was Terminated
    absent rlock:job
  done
}

@test "a lock that somebody else holds by now is lost, and left to them" {
  hold job --ttl 1
  cli DEL rlock:job
  try acquire job
  exits 0
  finish "$HOLDER"
  exits 76
  same "$(cli HEXISTS rlock:job "$OUT")" 1
}

@test "no Redis at the address: 69, the message names it, and the command is not started" {
  refuses 69 127.0.0.1:1 run --key job --redis redis://127.0.0.1:1 -- touch "$T/ran"
  refuses 69 127.0.0.1:1 run --key job --redis redis://127.0.0.1:1 -n -E 0 -- touch "$T/ran"
  refuses 69 127.0.0.1:1 run --key job --redis redis://127.0.0.1:1 -w 10 -- touch "$T/ran"
  ((TOOK < 5000)) || fail "took $TOOK ms, though there never was a server"
  refuses 69 no-such-host.invalid run --key job --redis redis://no-such-host.invalid -- touch "$T/ran"
  [[ ! -e $T/ran ]]
}

@test "a wait that runs out because Redis went away: 69" {
  try acquire job
  export RLOCK_REDIS=unix://$REDIS_SOCK # another test's server may soon have the port
  start waiter rlock run --key job -w 2 -- touch "$T/ran"
  wait_for_text waiting "$T/waiter.err"
  stop_redis
  finish "$PID"
  exits 69
  contains "$(<"$T/waiter.err")" "$REDIS_SOCK"
  [[ ! -e $T/ran ]]
}

# ---- signals

@test "TERM is passed on to the command, which decides how to react, and the lock is released" {
  write_script patient 'trap "echo bye; exit 7" TERM; echo ready; while :; do sleep .05; done'
  start job rlock run --key job -- "$T/patient"
  wait_for_text ready "$T/job.out"
  kill "$PID"
  finish "$PID"
  exits 7
  same "$(<"$T/job.out")" $'ready\nbye'
  absent rlock:job
  hold job
  kill "$HOLDER"
  finish "$HOLDER"
  exits 143
  absent rlock:job
}

@test "kill -9 of rlock ends its command at once, and says so" {
  start job rlock run --key job -- sh -c 'echo $$; exec sleep 600'
  wait_until "$PATIENCE" test -s "$T/job.out"
  kill -KILL "$PID"
  wait_until 2 gone "$(<"$T/job.out")"
  wait_for_text $'rlock: job: rlock was killed, and so the command was killed too\n' "$T/job.err"
}
