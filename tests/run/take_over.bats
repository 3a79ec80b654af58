# rlock run: cases in which the guard cannot see, cannot act or cannot kill, and what the keeper does then.

load ../support/helpers
load ../support/supervision

setup() {
  hermetic
  start_redis_with_a_log
}

# ---- processes that cannot be seen

@test "no /proc, or another namespace's: refused before anything is started, 71, and the message says what to do" {
  is_sanitized && skip "a sanitizer needs /proc"
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

@test "a server that comes back before KILL: a process that cannot be killed keeps the lock" {
  ((EUID == 0)) || skip "only root can make what an ordinary user cannot kill"
  ordinary_user
  install -m 4755 "$(command -v setpriv)" "$T/become"
  start job "${AS_USER[@]}" rlock run --key job --ttl 8 -- \
    sh -c '"$0" --reuid 0 --regid 0 --clear-groups sh -c "echo \$\$; exec sleep 600"' "$T/become"
  wait_until "$PATIENCE" test -s "$T/job.out"
  freeze "$REDIS_PID"
  wait_for_text 'could not be renewed in time; stopping the command' "$T/job.err"
  kill -CONT "$REDIS_PID"
  wait_for_text 'cannot be killed; job is held until none is left' "$T/job.err"
  sleep 9 # longer than the lease
  exists rlock:job
  kill -KILL "$(<"$T/job.out")"
  finish "$PID"
  exits 76
  absent rlock:job
}

does_not_wait_after() { # SIGNAL
  local guard
  run_with_a_root_descendant
  guard=$(guard_of "$PID")
  kill "-$1" "$PID"
  finish "$PID"
  kill -KILL "$ROOT_PID"
  exits 124
  wait_until "$PATIENCE" gone "$guard"
  [[ $(<"$T/job.err") != *'was killed, and so'* ]] || fail "$(<"$T/job.err")"
  contains "$(<"$T/job.err")" "(SIG$1); job stays taken until its lease runs out"
  exists rlock:job
}

@test "TERM to a run that waits for a process that cannot be killed: a warning, and the lock stays taken until its lease runs out" {
  does_not_wait_after TERM
}

@test "INT to a run that waits for a process that cannot be killed does the same as TERM" {
  does_not_wait_after INT
}

@test "a guard that is stopped while it waits for a process that cannot be killed: the keeper sees the end" {
  run_with_a_root_descendant
  freeze "$(guard_of "$PID")"
  kill -KILL "$ROOT_PID"
  finish "$PID"
  exits 124
  absent rlock:job
}

@test "a guard that is stopped while it kills is not waited for beyond the lease" {
  ((EUID == 0)) || skip "only root can make what an ordinary user cannot kill"
  ordinary_user
  install -m 4755 "$(command -v setpriv)" "$T/become"
  start job "${AS_USER[@]}" rlock run -v --key job --ttl 2 -- \
    sh -c '"$0" --reuid 0 --regid 0 --clear-groups sh -c "echo \$\$; exec sleep 600"' "$T/become"
  wait_until "$PATIENCE" test -s "$T/job.out"
  local guard began
  guard=$(guard_of "$PID")
  freeze "$REDIS_PID"
  wait_for_text 'killing what is left' "$T/job.err"
  began=$(now_ms)
  kill -STOP "$guard" # upon which the keeper kills it, perhaps at once
  kill -KILL "$(<"$T/job.out")"
  wait_for_text 'the guard process did not stop the command, so it was killed' "$T/job.err"
  ((began = $(now_ms) - began)) # without the check it is 3 s
  ((began < 2000)) || fail "it took $began ms"
  kill -CONT "$REDIS_PID"
  finish "$PID"
  exits 76
}

has_long_lease() { (($(cli PTTL rlock:job) > 20000)); } # it was renewed once

@test "a command that is started late has all of its --max-runtime, and its first signal" {
  hold job --ttl 60s
  start waiter rlock run job --ttl 60s --max-runtime 3s -- sh -c 'trap "echo told; exit 0" TERM; while :; do sleep .1; done'
  wait_for_text 'waiting for job' "$T/waiter.err"
  freeze "$(guard_of "$PID")"
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  sleep 2 # more than the time that the guard may take to report
  kill -CONT "$(guard_of "$PID")"
  finish "$PID"
  exits 124
  same "$(<"$T/waiter.out")" told
}

@test "keeper and guard are stopped beyond --max-runtime: the command gets its first signal all the same" {
  local guard
  start job rlock run job --max-runtime 2s --kill-after 5s -- \
    sh -c 'trap "echo told; exit 0" TERM; echo ready; while :; do sleep .1; done'
  wait_for_text ready "$T/job.out"
  wait_until "$PATIENCE" has_long_lease
  guard=$(guard_of "$PID")
  freeze "$PID"
  freeze "$guard"
  sleep 3 # longer than the time and the answer
  kill -CONT "$PID"
  sleep 0.1
  kill -CONT "$guard"
  finish "$PID"
  exits 124
  same "$(tail -n 1 "$T/job.out")" told
}

@test "a zombie that a debugger holds counts as dead: the lock is released" {
  mkfifo "$T/end"
  start job rlock run --key job --at-end kill --kill-after 100ms -- sh -c 'sleep 600 & read -r _ <"$0"' "$T/end"
  RUN=$PID
  wait_held job
  COMMAND=$(guard_of "$(guard_of "$RUN")")
  wait_until "$PATIENCE" guard_of_is_there "$COMMAND"
  start debugger python3 -c 'import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
assert libc.ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0, ctypes.get_errno()
print("seized", flush=True)
time.sleep(600)' "$(guard_of "$COMMAND")"
  wait_until "$PATIENCE" says_or_gone seized "$T/debugger.out" "$PID"
  grep -q seized "$T/debugger.out" || skip "this machine lets nobody trace"
  echo >"$T/end"
  finish "$RUN"
  exits 0
  absent rlock:job
}

@test "a zombie that a debugger holds does not end a command that runs" {
  local sleeper
  mkfifo "$T/end"
  start job rlock run --key job -- sh -c '(sleep 600 & echo $!); read -r _ <"$0"' "$T/end"
  RUN=$PID
  wait_until "$PATIENCE" test -s "$T/job.out"
  sleeper=$(<"$T/job.out")
  start debugger python3 -c 'import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
assert libc.ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0, ctypes.get_errno()
print("seized", flush=True)
time.sleep(600)' "$sleeper"
  wait_until "$PATIENCE" says_or_gone seized "$T/debugger.out" "$PID"
  grep -q seized "$T/debugger.out" || skip "this machine lets nobody trace"
  kill -KILL "$sleeper"
  sleep 8 # two checks of the keeper
  ! gone "$RUN" || fail "$(<"$T/job.err")"
  echo >"$T/end"
  finish "$RUN"
  exits 0
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

@test "a guard that is stopped for longer than a lease, and continued: the command of a lock that was renewed goes on" {
  local guard
  start job rlock run --key job --ttl 2 -- sh -c 'echo started; sleep 4; echo went on'
  wait_for_text started "$T/job.out"
  guard=$(guard_of "$PID")
  freeze "$guard"
  sleep 2.5
  kill -CONT "$guard"
  finish "$PID"
  exits 0
  contains "$(<"$T/job.out")" 'went on'
}

@test "a guard that is stopped while rlock waits for the lock: 70, the command was not started, and the lock is given back" {
  hold job
  start waiter rlock run --key job --ttl 3 --report "$T/report" -- touch "$T/ran"
  wait_until "$PATIENCE" exists '{rlock:job}:queue'
  freeze "$(guard_of "$PID")"
  kill -TERM "$HOLDER"
  finish "$PID"
  exits 70
  contains "$(<"$T/waiter.err")" 'job: the guard process did not answer; the command was not started'
  jq -e '.command_status == null and .signal == null' "$T/report"
  [[ ! -e $T/ran ]]
  absent rlock:job
}

# hang COMMAND: sets HUNG, a copy of it whose exec hangs until HANG is killed
hang() {
  HUNG=$T/hung
  cp "$(type -P "$1")" "$HUNG"
  start hang python3 "$HERE/hang_exec.py" "$HUNG"
  HANG=$PID
  wait_until "$PATIENCE" says_or_gone armed "$T/hang.out" "$PID"
  grep -q armed "$T/hang.out" || skip "this machine lets nobody watch files: $(<"$T/hang.err")"
}

is_childless() { [[ -z $(guard_of "$1") ]]; } 2>/dev/null # PID
is_starting() { [[ -n $(guard_of "$(guard_of "$1")") ]]; } 2>/dev/null # RUN: its command's process is there

@test "an exec that hangs: --max-runtime and TERM end it all the same" {
  hang sleep
  start job rlock run --key job --max-runtime 1s --kill-after 200ms -- "$HUNG" 600
  finish "$PID"
  exits 124
  absent rlock:job
  start job rlock run --key job --kill-after 200ms -- "$HUNG" 600
  wait_until "$PATIENCE" is_starting "$PID"
  kill "$PID"
  finish "$PID"
  exits 143
  absent rlock:job
}

@test "an exec that hangs while the keeper is killed, or stopped until the lease is over: the command never runs" {
  local signal guard
  hang touch
  for signal in KILL STOP; do
    start job rlock run --key job --ttl 1 -- "$HUNG" "$T/ran"
    wait_until "$PATIENCE" is_starting "$PID"
    guard=$(guard_of "$PID")
    kill "-$signal" "$PID"
    wait_until "$PATIENCE" is_childless "$guard"
    wait_until "$PATIENCE" absent rlock:job
    kill -CONT "$PID" 2>/dev/null || true
    finish "$PID"
  done
  kill "$HANG"
  finish "$HANG"
  wait_until "$PATIENCE" no_leftovers
  [[ ! -e $T/ran ]]
}

@test "an exec that hangs for longer than a lease is waited for, since the lease is renewed" {
  hang echo
  start job rlock run --key job --ttl 1s -- "$HUNG" ran
  wait_until "$PATIENCE" is_starting "$PID"
  sleep 2.5
  exists rlock:job
  kill "$HANG"
  finish "$PID"
  exits 0
  same "$(<"$T/job.out")" ran
}

@test "a guard that is stopped overlooks the command's end: the lock is released nevertheless" {
  mkfifo "$T/end"
  start job rlock run --key job -- sh -c 'echo started; read -r _ <"$0"' "$T/end"
  wait_for_text started "$T/job.out"
  freeze "$(guard_of "$PID")"
  echo >"$T/end"
  finish "$PID"
  exits 70
  contains "$(<"$T/job.err")" 'the command had ended, but the guard process did not say how'
  absent rlock:job
}

# ---- words that cannot be sent

@test "an order to start that cannot be sent: 71, the command is not started, and the lock is released" {
  local when told=
  can_trace
  try run --key job -- true # the server learns the scripts
  for when in 1 2 3 4; do # the request to Redis is sent by the same call
    rm -f "$T/ran"
    STATUS=0
    strace -qq -o /dev/null -e trace=sendto -e inject="sendto:error=ENOBUFS:when=$when" \
      rlock run --key job -- touch "$T/ran" 2>"$T/err" 3>&- 4>&- || STATUS=$?
    absent rlock:job
    grep -q 'cannot tell the guard process to start the command: No buffer space' "$T/err" || continue
    told=yes
    exits 71
    [[ ! -e $T/ran ]]
  done
  same "$told" yes
}

# end_with INJECTION: a run whose command ends with 3, while strace does that to the guard's last word; sets GUARD
end_with() {
  can_trace
  mkfifo "$T/end"
  start job rlock run --key job -- sh -c 'echo started; read -r _ <"$0"; exit 3' "$T/end"
  wait_for_text started "$T/job.out"
  GUARD=$(guard_of "$PID")
  start tracer strace -qq -o "$T/trace" -p "$GUARD" -e trace=sendto,shutdown -e "inject=sendto:$1"
  wait_until "$PATIENCE" grep -q '^TracerPid:.[1-9]' "/proc/$GUARD/status"
  echo >"$T/end"
  finish "${RUNNING[0]}"
}

@test "the guard's last word cannot be sent: the lock is released nevertheless" {
  end_with error=ENOBUFS
  exits 70
  grep -q '^shutdown(' "$T/trace" # so that the keeper hears of it, and need not look
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
  kill -KILL "$(child_of lock-guard "$PID")"
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

@test "take-over spares what a background job of the calling script starts later, whether the guard is killed or stopped" {
  local signal
  for signal in KILL STOP; do
    rm -f "$T/daemon" "$T/go"
    # The job starts its daemon, which is orphaned, only when rlock is there.
    start job bash -c '(until [ -e "$1/go" ]; do sleep .02; done; setsid sleep 600 & echo $! >"$1/daemon") &
      exec rlock run --key job --ttl 1 --redis-timeout 300ms -- sleep 601' - "$T"
    wait_held job
    : >"$T/go"
    wait_until "$PATIENCE" is_child_of "$PID" "$T/daemon"
    kill "-$signal" "$(child_of lock-guard "$PID")"
    [[ $signal == KILL ]] || kill -STOP "$REDIS_PID"
    finish "$PID"
    ! gone "$(<"$T/daemon")" || fail "the daemon was killed"
    kill "$(<"$T/daemon")"
    wait_until "$PATIENCE" no_leftovers
    kill -CONT "$REDIS_PID"
    wait_until "$PATIENCE" absent rlock:job
  done
}

is_child_of() { [[ -s $2 && $(awk '/^PPid/ {print $2}' "/proc/$(<"$2")/status") == "$1" ]]; } # PARENT FILE

# ---- nothing can be opened, no memory

# fails_in PID CALLS ERROR: from here on those system calls of that process fail
fails_in() {
  strace -qq -p "$1" -o "$T/trace" -e "trace=$2" -e "inject=$2:error=$3" 2>/dev/null 3>&- 4>&- &
  RUNNING+=("$!")
  wait_until "$PATIENCE" grep -q "^TracerPid:.[1-9]" "/proc/$1/status"
}

@test "no file can be opened when the keeper is killed, or the lease ends: the guard kills all the same" {
  local how
  can_trace
  for how in keeper lease; do
    run_witness --ttl 2 --redis-timeout 300ms -- "${ALL[@]}"
    fails_in "$(guard_of "$PID")" openat,pidfd_open,getdents64 ENFILE
    if [[ $how == keeper ]]; then kill -KILL "$PID"; else kill -STOP "$REDIS_PID"; fi
    wait_until "$PATIENCE" no_witnesses
    in_time
    finish "$PID"
    kill -CONT "$REDIS_PID"
    wait_until "$PATIENCE" absent rlock:job
  done
}

@test "no file can be opened when the guard is killed: the keeper kills all the same, and then releases the lock" {
  can_trace
  run_witness -- "${ALL[@]}"
  GUARD=$(guard_of "$PID")
  fails_in "$PID" openat,pidfd_open ENFILE
  kill -KILL "$GUARD"
  finish "$PID"
  exits 70
  no_witnesses
  absent rlock:job
}

@test "a guard in a frozen cgroup while no file can be opened: the lock is kept until the command can be killed" {
  local guard
  can_trace
  freezer || skip "this machine has no cgroup that freezes"
  run_witness --max-runtime 8 --kill-after 200ms -- "${ALL[@]}"
  guard=$(guard_of "$PID")
  fails_in "$PID" openat,pidfd_open ENFILE
  echo "$guard" >"$FREEZER/cgroup.procs"
  echo "$FROZEN" >"$FREEZER/$FREEZE"
  wait_until "$PATIENCE" is_being_killed "$guard"
  sleep 1 # ten times as long as killed processes have to die
  exists rlock:job
  thaw
  finish "$PID"
  exits 124
  no_witnesses
  absent rlock:job
}

is_being_killed() { # PID: KILL is pending
  local pending
  pending=$(sed -n 's/^ShdPnd:.//p' "/proc/$1/status")
  (((16#$pending & 0x100) != 0))
}

@test "the guard is killed and the keeper has no memory: all that the command started is dead when it ends" {
  is_sanitized && skip "a sanitizer has memory of its own"
  run_witness --ttl 30 -- "${ALL[@]}"
  GUARD=$(guard_of "$PID")
  prlimit --pid "$PID" --as=1000000 --data=1
  kill -KILL "$GUARD"
  finish "$PID"
  no_witnesses
}

@test "the keeper can wait for nothing any more: all that the command started is dead when it ends" {
  can_trace
  run_witness --ttl 30 -- "${ALL[@]}"
  local keeper=$PID
  start tracer strace -qq -o "$T/trace" -p "$keeper" -e trace=ppoll -e inject=ppoll:error=ENOMEM
  finish "$keeper"
  exits 71
  no_witnesses
}

# start_chain LEVELS: a process of each level is the child of the one before, in a session of its own; sets NAP
start_chain() {
  NAP=600.$BASHPID
  cat >"$T/chain.py" <<'END'
import os, signal, sys

def nap():
    while True:
        signal.pause()

for level in range(int(sys.argv[2])):
    if os.fork() != 0:
        nap()
    os.setsid()
    for _ in range(3):
        if os.fork() == 0:
            nap()
print("ready", flush=True)
nap()
END
  start job rlock run --key job --ttl 30 --renew-every 500ms -- python3 "$T/chain.py" "$NAP" "$1"
  wait_for_text ready "$T/job.out"
  GUARD=$(guard_of "$PID")
  (($(left_of_chain) > 4 * $1)) || fail 'the chain has not begun'
}

# allow_no_more_files PROCESS
allow_no_more_files() {
  local used=0
  while [[ -e /proc/$1/fd/$used ]]; do used=$((used + 1)); done
  prlimit --pid "$1" --nofile=$used:$used
}

left_of_chain() { pgrep -fc "chain.py $NAP"; }

@test "the keeper is killed and the guard can open nothing: a deep tree is dead too, generation by generation" {
  start_chain 100
  allow_no_more_files "$GUARD"
  kill -KILL "$PID"
  wait_until "$PATIENCE" gone "$GUARD"
  same "$(left_of_chain)" 0
}

@test "the guard is killed, the keeper can open nothing and is slow, and the lock is lost meanwhile: a deep tree is dead too" {
  start_chain 20
  allow_no_more_files "$PID"
  # so that it takes longer than a kill usually does
  strace -qq -p "$PID" -o "$T/trace" -e trace=kill -e inject=kill:delay_enter=20000 2>/dev/null 3>&- 4>&- &
  RUNNING+=("$!")
  wait_until "$PATIENCE" grep -q "^TracerPid:.[1-9]" "/proc/$PID/status"
  cli DEL rlock:job
  kill -KILL "$GUARD"
  finish "$PID"
  same "$(left_of_chain)" 0
}

@test "nobody reads standard error, the guard is stopped and the server frozen: dead in time, and the message comes later" {
  mkfifo "$T/pipe"
  exec 8<>"$T/pipe"
  dd if=/dev/zero of="$T/pipe" oflag=nonblock bs=4096 status=none 2>/dev/null || true # until it is full
  start job sh -c 'exec rlock run --key job --ttl 2s --redis-timeout 300ms -- python3 "$1" stamp "$2" stubborn child setsid double 2>"$0"' \
    "$T/pipe" "$HERE/witness.py" "$T/stamps"
  wait_for_text ready "$T/job.out"
  freeze "$(guard_of "$PID")"
  kill -STOP "$REDIS_PID"
  wait_until "$PATIENCE" no_witnesses
  in_time
  finish "$PID"
  exits 76
}

@test "nobody reads standard error and -v has much to say: the lease is kept all the same" {
  mkfifo "$T/pipe"
  exec 8<>"$T/pipe"
  dd if=/dev/zero of="$T/pipe" oflag=nonblock bs=4096 status=none 2>/dev/null || true # until it is full
  start job sh -c 'exec rlock run -v --key job --ttl 2s -- sleep 3 2>"$0"' "$T/pipe"
  finish "$PID"
  exits 0
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

@test "a guard that is stopped after its last word does not keep the keeper" {
  end_with signal=STOP
  exits 3
  gone "$GUARD"
  absent rlock:job
}

@test "where the command's process cannot share our memory, as under an emulator, it is started all the same" {
  can_trace
  hold job
  start waiter rlock run --key job -- sh -c 'echo ran; exit 7'
  wait_until "$PATIENCE" exists '{rlock:job}:queue'
  fails_in "$(guard_of "$PID")" clone EINVAL:when=1
  kill -TERM "$HOLDER"
  finish "$PID"
  exits 7
  same "$(<"$T/waiter.out")" ran
  grep -q 'CLONE_VM.*EINVAL.*INJECTED' "$T/trace"
}
