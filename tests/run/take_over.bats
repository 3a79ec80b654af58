# rlock run: cases in which the guard cannot see, cannot act or cannot kill, and what the keeper does then.

load ../support/helpers
load ../support/supervision

setup() {
  hermetic
  start_redis_with_a_log
}

# ---- processes that cannot be seen

@test "no /proc, or another namespace's: refused before anything is started, 71, and the message says what to do" {
  unshare -m true 2>/dev/null || skip "namespaces may not be made here"
  local hide
  for hide in 'mount -t tmpfs none /proc;' ''; do
    STATUS=0
    unshare -mpf --propagation private sh -c "$hide"'exec rlock run --key job -- touch "$0"' "$T/ran" 2>"$T/err" ||
      STATUS=$?
    exits 71
    contains "$(<"$T/err")" /proc
    [[ ! -e $T/ran ]]
    absent rlock:job
  done
  unshare -pf --mount-proc rlock run --key job -- touch "$T/ran"
  [[ -e $T/ran ]]
}

# ---- processes that cannot be killed

# A command with a descendant that became root, so that an ordinary user's rlock cannot kill it. Sets PID and ROOT_PID.
run_with_a_root_descendant() {
  ((EUID == 0)) || skip "only root can make what an ordinary user cannot kill"
  ordinary_user
  install -m 4755 "$(command -v setpriv)" "$T/become"
  start job "${AS_USER[@]}" rlock run --key job --ttl 4 --max-runtime 1s --kill-after 100ms -- \
    sh -c '"$0" --reuid 0 --regid 0 --clear-groups sh -c "echo \$\$; exec sleep 600"' "$T/become"
  wait_until "$PATIENCE" test -s "$T/job.out"
  ROOT_PID=$(<"$T/job.out")
  wait_for_text 'cannot be killed; job is held until none is left' "$T/job.err"
}

@test "a process that cannot be killed keeps the lock, which is renewed until the process has ended" {
  run_with_a_root_descendant
  contains "$(<"$T/job.err")" "pid $ROOT_PID"
  sleep 5 # longer than the lease
  exists rlock:job
  kill -KILL "$ROOT_PID"
  finish "$PID"
  exits 124
  absent rlock:job
}

@test "TERM to a run that waits for a process that cannot be killed: a warning, and the lock stays taken until its lease runs out" {
  run_with_a_root_descendant
  kill "$PID"
  finish "$PID"
  kill -KILL "$ROOT_PID"
  exits 124
  contains "$(<"$T/job.err")" '(SIGTERM); job stays taken until its lease runs out'
  exists rlock:job
}

@test "a zombie that a debugger holds counts as dead: the lock is released" {
  start job rlock run --key job --max-runtime 500ms --kill-after 100ms -- sh -c 'trap "" TERM; sleep 600 & wait'
  wait_held job
  COMMAND=$(guard_of "$(guard_of "$PID")")
  wait_until "$PATIENCE" guard_of_is_there "$COMMAND"
  start debugger python3 -c 'import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
assert libc.ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0, ctypes.get_errno()
print("seized", flush=True)
time.sleep(600)' "$(guard_of "$COMMAND")"
  RUN=$PID
  wait_until "$PATIENCE" says_or_gone seized "$T/debugger.out" "$RUN"
  grep -q seized "$T/debugger.out" || skip "this machine lets nobody trace"
  finish "${RUNNING[0]}"
  exits 124
  absent rlock:job
}

guard_of_is_there() { [[ -n $(guard_of "$1") ]]; }
says_or_gone() { grep -qs "$1" "$2" || gone "$3"; } # TEXT FILE PID

# ---- a guard that does not answer

@test "a guard that is stopped: --max-runtime and a second TERM kill the command without it" {
  run_witness --max-runtime 6 --kill-after 200ms -- "${ALL[@]}"
  freeze "$(guard_of "$PID")"
  finish "$PID"
  exits 124
  no_witnesses
  absent rlock:job
  run_witness --kill-after 200ms -- "${ALL[@]}"
  freeze "$(guard_of "$PID")"
  kill "$PID"
  sleep 0.3
  kill "$PID"
  finish "$PID"
  exits 137
  no_witnesses
  absent rlock:job
}

@test "an exec that hangs: --max-runtime, and a second TERM, end it all the same" {
  cp "$(command -v sleep)" "$T/hung"
  start hang python3 "$HERE/hang_exec.py" "$T/hung"
  wait_until "$PATIENCE" says_or_gone armed "$T/hang.out" "$PID"
  grep -q armed "$T/hang.out" || skip "this machine lets nobody watch files: $(<"$T/hang.err")"
  start job rlock run --key job --max-runtime 1s --kill-after 200ms -- "$T/hung" 600
  finish "$PID"
  exits 124
  absent rlock:job
  start job rlock run --key job --kill-after 200ms -- "$T/hung" 600
  wait_held job
  kill "$PID"
  sleep 0.4
  kill "$PID"
  finish "$PID"
  exits 137
  absent rlock:job
}

@test "a guard in a frozen cgroup, which no signal reaches: the command is killed without it" {
  freezer || skip "this machine has no cgroup that freezes"
  run_witness --max-runtime 6 --kill-after 200ms -- "${ALL[@]}"
  local guard
  guard=$(guard_of "$PID")
  echo "$guard" >"$FREEZER/cgroup.procs"
  echo "$FROZEN" >"$FREEZER/$FREEZE"
  finish "$PID"
  exits 124
  no_witnesses
  absent rlock:job
  thaw
  wait_until "$PATIENCE" gone "$guard"
}

# freezer: sets FREEZER, a cgroup of this test's, the file FREEZE in it, and the words FROZEN and THAWED for that
freezer() {
  local root
  for root in /sys/fs/cgroup/freezer /sys/fs/cgroup /sys/fs/cgroup/unified; do
    FREEZER=$root/rlock-test.$$
    mkdir "$FREEZER" 2>/dev/null || continue
    FREEZE=freezer.state FROZEN=FROZEN THAWED=THAWED
    [[ -e $FREEZER/$FREEZE ]] || FREEZE=cgroup.freeze FROZEN=1 THAWED=0
    [[ ! -w $FREEZER/$FREEZE ]] || return 0
    rmdir "$FREEZER"
  done
  return 1
}

thaw() {
  echo "$THAWED" >"$FREEZER/$FREEZE"
  wait_until "$PATIENCE" rmdir "$FREEZER" 2>/dev/null
}

teardown() {
  [[ ! -e ${FREEZER:-} ]] || thaw
  clean_up
}

@test "take-over spares what the calling script had in the background" {
  start job bash -c 'sleep 600 & echo $! >"$0"; exec rlock run --key job -- sleep 601' "$T/helper"
  wait_held job
  kill -KILL "$(child_of rlock "$PID")"
  finish "$PID"
  exits 70
  ! gone "$(<"$T/helper")" || fail "the helper was killed"
  kill "$(<"$T/helper")"
}

child_of() { # COMM PARENT
  local child
  for child in $(<"/proc/$2/task/$2/children"); do
    [[ $(<"/proc/$child/comm") != "$1" ]] || echo "$child"
  done
}

# ---- a hostile environment

@test "a stack of 80 KB is enough" {
  ulimit -s 80
  try run --key job -- echo ran
  exits 0
  same "$OUT" ran
}

@test "RLOCK_HELD of 100 KB reaches the command, behind the new lock" {
  local held
  held=$(head -c 100000 /dev/zero | tr '\0' x)
  RLOCK_REDIS=$RLOCK_REDIS RLOCK_PREFIX=rlock: RLOCK_HELD=$held try run --key job -- sh -c 'echo ${#RLOCK_HELD} ${RLOCK_HELD%=*}'
  exits 0
  matches "$OUT" '^100037 job$'
}

@test "a password in a URL on the command line is not shown while the command runs" {
  cli CONFIG SET requirepass hunter2
  start job rlock run --key job --redis "redis://:hunter2@127.0.0.1:$REDIS_PORT" -- sleep 600
  wait_until "$PATIENCE" shows "$PID" '\*\*\*\*\*\*\*@'
  [[ $(tr '\0' ' ' <"/proc/$PID/cmdline") != *hunter2* ]]
}

shows() { tr '\0' ' ' <"/proc/$1/cmdline" | grep -q "$2"; } # PID PATTERN

@test "the command cannot read the keeper's environment" {
  ordinary_user
  start job "${AS_USER[@]}" RLOCK_PASSWORD= rlock run --key job -- \
    sh -c 'cat "/proc/$(awk "/^PPid/ {print \$2}" /proc/$PPID/status)/environ" && echo read it'
  finish "$PID"
  [[ $(<"$T/job.out") != *'read it'* ]]
}
