# rlock run: keeper, guard and the command's whole tree. Whichever of our two processes is killed or stopped, no process
# of the command outlives the lease; and the processes that a successful command left running are not killed.

load ../support/helpers
load ../support/supervision

setup() {
  hermetic
  start_redis_with_a_log
}

@test "without a supervisor the witness's descendants outlive it, so that the other tests can tell the difference" {
  start job python3 "$HERE/witness.py" stamp "$T/stamps" "${ALL[@]}"
  wait_for_text ready "$T/job.out"
  kill -KILL "$PID"
  same "$(witnesses | wc -l)" 3
  # shellcheck disable=SC2046 # one word each
  kill -KILL $(witnesses)
}

# ---- keeper

keeper_killed() {
  kill_keeper() { kill -KILL "$PID"; }
  dies_at_once kill_keeper
}

@test "keeper killed: the command and every descendant are dead within 100 ms" {
  keeper_killed
}

@test "an ordinary user's keeper is killed: the command and every descendant are dead within 100 ms" {
  ordinary_user
  keeper_killed
}

@test "keeper killed while the command is being stopped: nothing survives" {
  run_witness --max-runtime 8 --kill-after 5 -- "${ALL[@]}"
  wait_for_text 'stopping the command' "$T/job.err"
  kill -KILL "$PID"
  wait_until 2 no_witnesses
}

@test "keeper killed before the lock is taken: its guard exits too" {
  hold job
  start waiter rlock run --key job -- touch "$T/ran"
  wait_for_text waiting "$T/waiter.err"
  GUARD=$(guard_of "$PID")
  kill -KILL "$PID"
  wait_until 2 gone "$GUARD"
  [[ ! -e $T/ran ]]
}

keeper_stopped() {
  run_witness --ttl 1 -- "${ALL[@]}"
  freeze "$PID"
  wait_until "$PATIENCE" no_witnesses
  in_time 1000
  wait_until "$PATIENCE" absent rlock:job
  try acquire job # from now on somebody else holds it
  exits 0
  kill -CONT "$PID"
  finish "$PID"
  exits 76
  contains "$(<"$T/job.err")" 'rlock: lost job'
  same "$(cli HEXISTS rlock:job "$OUT")" 1
}

@test "keeper stopped: all dead before the lease ends; when continued, it exits with 76 and leaves the next holder alone" {
  keeper_stopped
}

@test "an ordinary user's keeper is stopped: all are dead before the lease ends" {
  ordinary_user
  keeper_stopped
}

@test "keeper stopped, and a command that keeps its guard busy with job control: dead in time" {
  run_witness --ttl 2 -- setsid
  freeze "$PID"
  python3 - "$(witnesses | head -n 1)" <<'END_OF_SCRIPT'
import os, signal, sys, time
pid = int(sys.argv[1])
try:
    for _ in range(2000):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.0003)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.0003)
except ProcessLookupError:
    pass
END_OF_SCRIPT
  wait_until "$PATIENCE" no_witnesses
  in_time
}

# ---- guard

guard_killed() {
  kill_guard() { kill -KILL "$(guard_of "$PID")"; }
  dies_at_once kill_guard
  finish "$PID"
  exits 70
  contains "$(<"$T/job.err")" 'rlock: job: the guard process was killed'
  absent rlock:job
}

@test "guard killed: the keeper ends the command and every descendant, 70, the lock is released" {
  guard_killed
}

@test "an ordinary user's guard is killed: the keeper ends the command and every descendant" {
  ordinary_user
  guard_killed
}

@test "guard killed before the lock is taken: 70, and rlock leaves the queue" {
  hold job
  start waiter rlock run --key job -- touch "$T/ran"
  wait_for_text waiting "$T/waiter.err"
  kill -KILL "$(guard_of "$PID")"
  finish "$PID"
  exits 70
  absent '{rlock:job}:queue'
  [[ ! -e $T/ran ]]
}

@test "guard stopped and server frozen: the keeper ends the command in time itself" {
  run_witness --ttl 1 --redis-timeout 300ms -- "${ALL[@]}"
  freeze "$(guard_of "$PID")"
  kill -STOP "$REDIS_PID"
  finish "$PID"
  no_witnesses
  exits 76
  in_time 1000
}

@test "both stopped just before the command starts, until the lease is over: it is not started" {
  hold job
  start waiter rlock -v run --key job --ttl 1 -- touch "$T/ran"
  wait_for_text waiting "$T/waiter.err"
  GUARD=$(guard_of "$PID")
  freeze "$GUARD"
  kill "$HOLDER"
  wait_until "$PATIENCE" held_by "$PID"
  freeze "$PID"
  wait_until "$PATIENCE" absent rlock:job
  kill -CONT "$GUARD"
  wait_until "$PATIENCE" has_told "$GUARD"
  kill -CONT "$PID"
  finish "$PID"
  exits 76
  [[ ! -e $T/ran && $(<"$T/waiter.err") != *'started touch'* ]] || fail "$(<"$T/waiter.err")"
  contains "$(<"$T/waiter.err")" 'rlock: lost job before its command was started'
}

# The guard has reported, and only waits for the keeper's end: it polls one descriptor.
has_told() { [[ $(<"/proc/$1/syscall") =~ ^[0-9]+\ 0x[0-9a-f]+\ 0x1\  ]]; } # PID
held_by() { [[ $(rlock status --json job | jq '.[].holders[].pid') == "$1" ]]; } # PID

@test "guard killed while the keeper is stopped: the kernel kills the command" {
  run_witness --
  freeze "$PID"
  kill -KILL "$(guard_of "$PID")"
  wait_until 5 no_witnesses
  kill -CONT "$PID"
  finish "$PID"
  exits 70
}

# ---- the tree

@test "a command that keeps forking and leaving its session is caught" {
  cat >"$T/hopper.py" <<'END_OF_SCRIPT'
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
if os.fork():
    time.sleep(600)
while True:
    if os.fork():
        os._exit(0)
    os.setsid()
END_OF_SCRIPT
  start job rlock run --key job --ttl 3 -- python3 "$T/hopper.py"
  wait_for_text ready "$T/job.out"
  cli DEL rlock:job
  finish "$PID"
  exits 76
  no_leftovers
}

@test "the processes that a successful command left running stay alive" {
  try run --key job -- sh -c 'setsid sh -c "sleep 601 & sleep 602" >/dev/null 2>&1 & sleep 603 >/dev/null 2>&1 & exit 4'
  exits 4
  ((TOOK < 10000)) || fail "waited for what was left behind"
  absent rlock:job
  wait_until "$PATIENCE" sleep_left 3
  # shellcheck disable=SC2046 # one word each
  kill $(leftovers)
}

sleep_left() { (($(pgrep -f '^sleep 60[123]$' | grep -cFf <(leftovers)) == $1)); }

@test "the processes that a successful command left running get no signal from us later" {
  try run --key job --ttl 500ms --max-runtime 300ms -- \
    sh -c 'sh -c "trap \"echo disturbed\" TERM HUP CONT; sleep 0.8; echo undisturbed" >"$0" 2>&1 & exit 0' "$T/left"
  exits 0
  wait_for_text undisturbed "$T/left"
  same "$(<"$T/left")" undisturbed
}

@test "the rest of a command that TERM ended in time is killed before the lease ends" {
  start job rlock run --key job --ttl 1 -- sh -c '
    (trap "" TERM; exec setsid python3 "$0" stamp "$1" child) & sleep 600' "$HERE/witness.py" "$T/stamps"
  wait_for_text ready "$T/job.out"
  cli DEL rlock:job
  finish "$PID"
  exits 76
  no_witnesses
  in_time
}

@test "a stopped command hears TERM when its lease is lost, since it is continued too" {
  start job rlock run --key job --ttl 3 -- sh -c 'trap "echo term; exit" TERM; echo $$; while :; do sleep 0.02; done'
  wait_until "$PATIENCE" has_lines "$T/job.out" 1
  freeze "$(<"$T/job.out")"
  cli DEL rlock:job
  finish "$PID"
  exits 76
  same "$(sed 1d "$T/job.out")" term
}

@test "a stopped command and its descendants are dead when the lease ends" {
  run_witness --ttl 1 -- child
  kill -STOP "$(witnesses | head -n 1)"
  kill -STOP "$REDIS_PID"
  finish "$PID"
  exits 76
  no_witnesses
  in_time
}

@test "nested: the inner run's command dies with the outer keeper, and no lock outlives its lease" {
  start outer rlock run --key outer --ttl 1 -- \
    rlock run --key inner --ttl 1 -- python3 "$HERE/witness.py" stamp "$T/stamps" "${ALL[@]}"
  wait_for_text ready "$T/outer.out"
  kill -KILL "$PID"
  wait_until 5 no_witnesses
  wait_until "$PATIENCE" absent rlock:outer
  wait_until "$PATIENCE" absent rlock:inner
}

@test "nested: TERM to the outer run releases both locks" {
  start outer rlock run --key outer -- rlock run --key inner -- sleep 600
  wait_held inner
  kill "$PID"
  finish "$PID"
  exits 143
  absent rlock:inner
  absent rlock:outer
}

@test "a chain of 300 processes, each with a session of its own, is killed at once and not link by link" {
  cat >"$T/chain.py" <<'END_OF_SCRIPT'
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(300):
    if os.fork():
        time.sleep(600)
    os.setsid()
print("ready", flush=True)
time.sleep(600)
END_OF_SCRIPT
  start job rlock run --key job -- python3 "$T/chain.py"
  wait_for_text ready "$T/job.out"
  kill -KILL "$PID"
  wait_until 3 no_leftovers
}

# ---- how the command ends decides what happens to its descendants

# Runs a worker that takes half a second to clean up after TERM, under a shell that dies of TERM at once. Sets PID and
# GUARD.
run_tidy_worker() { # SHELL [RUN-OPTION...]
  local shell=$1
  shift
  cat >"$T/worker.py" <<'END_OF_SCRIPT'
import os, signal, sys, time
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
print("ready", os.getpid(), flush=True)
signal.sigwait({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
second = signal.sigtimedwait({signal.SIGTERM, signal.SIGINT, signal.SIGHUP}, 0.5)
print("told again" if second else "tidied up", flush=True)
END_OF_SCRIPT
  start job rlock run --key job "$@" -- "$shell" -c 'python3 "$0"; echo after' "$T/worker.py"
  wait_for_text ready "$T/job.out"
  GUARD=$(guard_of "$PID")
}

# The lock is released after the worker's last word, and not before.
worker_was_waited_for() { # STATUS
  try -q run --key job -- cat "$T/job.out"
  contains "$OUT" 'tidied up'
  finish "$PID"
  exits "$1"
}

@test "TERM to rlock: a shell that dies at once does not free the lock while its worker tidies up" {
  local shell
  for shell in dash bash; do
    run_tidy_worker "$shell"
    kill "$PID"
    worker_was_waited_for 143
  done
}

@test "HUP or INT to rlock: a shell that dies at once does not free the lock while its worker tidies up" {
  run_tidy_worker dash
  kill -HUP "$PID"
  worker_was_waited_for 129
  run_tidy_worker dash
  kill -INT "$PID"
  worker_was_waited_for 130
}

@test "a command that was killed: the rest of its tree gets the first signal, and the lock is released when it has ended" {
  run_tidy_worker dash
  kill -KILL "$(guard_of "$GUARD")"
  worker_was_waited_for 137
}

@test "a process that ignores the first signal after its command was killed is killed after --kill-after, not before" {
  run_witness --kill-after 700ms -- "${ALL[@]}"
  KILLED=$(now_ms)
  kill -KILL "$(guard_of "$(guard_of "$PID")")"
  finish "$PID"
  exits 137
  (($(now_ms) >= KILLED + 690))
  no_witnesses
  absent rlock:job
}

@test "a command that exits by itself after TERM was passed on leaves no process behind" {
  start job rlock run --key job --kill-after 300ms -- \
    sh -c 'trap "exit 5" TERM; setsid sleep 600 & echo ready; wait'
  wait_for_text ready "$T/job.out"
  kill "$PID"
  finish "$PID"
  exits 5
  no_leftovers
}

@test "where /proc is missing, or of another PID namespace: no command is started" {
  is_sanitized && skip "a sanitizer needs /proc"
  local private=(unshare --mount --pid --fork --kill-child)
  ((EUID == 0)) || skip "this machine lets only root make namespaces, and we are not"
  "${private[@]}" true 2>/dev/null || skip "this machine has no namespaces"
  for hide in true 'umount -l /proc'; do
    start job "${private[@]}" sh -c "$hide && exec rlock run --key job -- touch $T/ran"
    finish "$PID"
    exits 71
    contains "$(<"$T/job.err")" '/proc is missing or shows another PID namespace'
    [[ ! -e $T/ran ]]
    absent rlock:job
  done
}

@test "--at-end wait: the lock is held, and renewed, until the last descendant has ended" {
  start job rlock run -v --key job --ttl 5s --renew-every 1s --at-end wait -- \
    sh -c 'setsid sh -c "until [ -e \"$0\" ]; do sleep .02; done" & exit 6' "$T/end"
  wait_held job
  wait_until "$PATIENCE" is_orphan
  wait_until "$PATIENCE" was_renewed 6 || fail "$(<"$T/job.err")" # it has been held for longer than one lease
  exists rlock:job
  touch "$T/end"
  finish "$PID"
  exits 6
  contains "$(<"$T/job.err")" 'job: the command has ended; waiting for what it left running'
  absent rlock:job
}

was_renewed() { (($(grep -c 'renewed job' "$T/job.err") >= $1)); } # TIMES
is_orphan() { [[ $(family_of "$PID" | wc -l) -ge 2 && -z $(pgrep -P "$(guard_of "$PID")" -f 'exit 6') ]]; }

@test "--at-end wait: a lost lease, --max-runtime and TERM stop the processes that were left" {
  local left=(sh -c 'setsid sleep 600 & sleep 601 & exit 0')
  try run --key job --at-end wait --max-runtime 300ms --kill-after 100ms -- "${left[@]}"
  exits 124
  no_leftovers
  start job rlock run --key job --renew-every 500ms --at-end wait -- "${left[@]}"
  wait_until "$PATIENCE" lingers
  cli DEL rlock:job
  finish "$PID"
  exits 76
  no_leftovers
  start job rlock run --key job --at-end wait --kill-after 300ms -- "${left[@]}"
  wait_until "$PATIENCE" lingers
  kill "$PID"
  finish "$PID"
  exits 0
  no_leftovers
  absent rlock:job
}

lingers() { grep -q "waiting for what it left" "$T/job.err" && (($(family_of "$PID" | wc -l) == 3)); }

# Notes in GUARD_TIME for how long its guard was on a processor, in ns, while a command that has N orphans made 200 more,
# which ended. Those N wait to open a FIFO: processes that execute nothing are made soonest.
time_guard() { # N
  local in=$T/in$1 guard before
  cat >"$T/orphans" <<'END'
#!/bin/bash
exec <"$2"
sh -c 'i=0; while [ $i -lt "$0" ]; do : <"$1" & i=$((i + 1)); done' "$1" "$2.never"
echo ready
read -r _
for ((i = 0; i < 200; i++)); do (: &); done
echo done
read -r _
END
  chmod +x "$T/orphans"
  mkfifo "$in" "$in.never"
  exec 5<>"$in"
  start "job$1" rlock run "job$1" --at-end kill --kill-after 0 -- "$T/orphans" "$1" "$in"
  wait_for_text ready "$T/job$1.out"
  guard=$(guard_of "$PID")
  before=$(cut -d' ' -f1 "/proc/$guard/schedstat")
  echo >&5
  wait_for_text "done" "$T/job$1.out"
  GUARD_TIME=$(($(cut -d' ' -f1 "/proc/$guard/schedstat") - before))
  echo >&5
  finish "$PID"
  exec 5>&-
}

@test "what orphans cost that come and go does not grow with those that stay" {
  local PATIENCE=60 few
  time_guard 20
  few=$GUARD_TIME
  time_guard 1500
  ((GUARD_TIME < 10 * few)) || fail "beside 20: $few ns, beside 1500: $GUARD_TIME ns"
}

@test "more zombies than the guard reaps in one look are all reaped, and the command goes on" {
  PATIENCE=60 try run job -- python3 -c '
import os, time
for pid in 0, os.getppid():  # the guard, on our processor, runs only when it has got them all
    os.sched_setaffinity(pid, {min(os.sched_getaffinity(0))})
middle = os.fork()
if middle == 0:
    for _ in range(1100):
        os.fork() or os._exit(0)
    time.sleep(.5)
    os._exit(0)  # leaves them all to the guard
os.waitpid(middle, 0)
time.sleep(5)  # the keeper looks every 3 s whether the guard reaps, and once more 1 s later'
  exits 0
}

@test "--at-end kill: what is left gets the first signal, then KILL, and the lock is released when it is dead" {
  try run --key job --at-end kill --kill-after 300ms -- sh -c '
    setsid sh -c "trap \"echo told; exit\" TERM; echo >\"$0\"; while :; do sleep .02; done" &
    setsid sh -c "trap \"\" TERM; exec sleep 600" &
    until [ -e "$0" ]; do sleep .02; done; exit 7' "$T/up"
  exits 7
  contains "$OUT" told
  no_leftovers
  absent rlock:job
}

@test "--at-end kill: what is stopped gets the first signal too, and goes on to obey it" {
  try run --key job --at-end kill --kill-after 9s -- sh -c '
    setsid sh -c "trap \"echo outside; exit\" TERM; kill -STOP \$\$; sleep 600" &
    sh -c "trap \"echo inside; exit\" TERM; kill -STOP \$\$; sleep 600" &
    until [ "$(grep -l "State:.T" /proc/[0-9]*/status | xargs grep -lx "PPid:.$$" | wc -l)" = 2 ]; do sleep .02; done'
  exits 0
  contains "$OUT" inside
  contains "$OUT" outside
  [[ $ERR != *killing* ]] || fail "$ERR"
}

@test "a HUP that the command obeyed long ago: what it has started since gets the first signal before KILL" {
  start job rlock run --key job --kill-after 1s -- bash -c '
    trap "trap - HUP; sh -c \"trap \\\"touch $0.told; exit\\\" TERM; touch $0.up; while :; do sleep .02; done\" & " HUP
    touch "$0"; until [ -e "$0.end" ]; do sleep .02; done; exit 0' "$T/job"
  wait_until "$PATIENCE" test -e "$T/job"
  kill -HUP "$PID"
  wait_until "$PATIENCE" test -e "$T/job.up"
  sleep 1.2 # longer than --kill-after
  touch "$T/job.end"
  finish "$PID"
  exits 0
  [[ -e $T/job.told ]] || fail "it was only killed"
}

@test "TERM to everybody, as a service manager sends it: what the command leaves is dead before the lock is free" {
  local guard
  start job rlock run job --kill-after 1s -- bash -c '
    (trap "" TERM; echo "$BASHPID" >"$0.worker"; exec sleep 600) &
    until [ -s "$0.worker" ]; do sleep .02; done
    trap "exit 0" TERM
    echo $$ >"$0.command"
    while :; do sleep .05; done' "$T/job"
  wait_until "$PATIENCE" test -s "$T/job.command"
  guard=$(guard_of "$PID")
  freeze "$PID" # it is slow to hear of it
  kill -TERM "$PID" "$guard" "$(<"$T/job.command")"
  wait_until "$PATIENCE" gone "$(<"$T/job.command")"
  wait_until "$PATIENCE" gone "$(<"$T/job.worker")"
  kill -CONT "$PID"
  finish "$PID"
  exits 0
  absent rlock:job
}

@test "a stop that begins during the short first lease: --kill-after counts, since the lease is renewed meanwhile" {
  start job rlock run --key job --ttl 60s --kill-after 8s -- bash -c '
    (trap "sleep 5; touch $0.tidied; exit" TERM; touch "$0"; while :; do sleep .02; done) & exec sleep 600' "$T/job"
  wait_until "$PATIENCE" test -e "$T/job"
  kill "$PID"
  finish "$PID"
  [[ -e $T/job.tidied ]] || fail "it was killed: $(<"$T/job.err")"
}

# ---- processes that are in the command's group, and no descendants

# Starts a container, whose init adopts what is orphaned in it; sets INIT.
container() {
  local private=(unshare --mount --pid --fork --kill-child --mount-proc)
  "${private[@]}" true 2>/dev/null || skip "this machine has no namespaces, or they may not be made here"
  start container "${private[@]}" python3 -c 'import os, time
while True:
    try:
        os.waitpid(-1, os.WNOHANG)
    except OSError:
        pass
    time.sleep(0.02)'
  CONTAINER=$PID
  wait_until "$PATIENCE" has_child "$CONTAINER"
  INIT=$(guard_of "$CONTAINER")
}

has_child() { [[ -n $(guard_of "$1") ]]; } # PID

# run_inside [RUN-OPTION...] -- SHELL-COMMANDS: a run of key job whose command enters the container; it notes the PID of
# a worker that ignores signals in $T/worker. Sets PID.
run_inside() {
  local options=()
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  start job rlock run --key job "${options[@]}" -- nsenter -t "$INIT" -p sh -c \
    '(trap "" TERM INT; echo >"$0"; exec sleep 607) & until [ -e "$0" ]; do sleep .02; done; '"$2" "$T/worker"
  wait_until "$PATIENCE" test -e "$T/worker"
}

workers() { pgrep -x -f 'sleep 607' | grep -xFf <(leftovers); }
no_worker() { [[ -z $(workers) ]]; }

@test "what nsenter leaves with another init is killed too: keeper killed, guard killed, time over, TERM" {
  local how
  container
  for how in keeper guard time TERM; do
    rm -f "$T/worker"
    if [[ $how == time ]]; then
      run_inside --kill-after 200ms --max-runtime 1s -- wait
    else
      run_inside --kill-after 200ms -- wait
    fi
    case $how in
      keeper) kill -KILL "$PID" ;;
      guard) kill -KILL "$(guard_of "$PID")" ;;
      TERM) kill "$PID" ;;
    esac
    finish "$PID"
    [[ $how != keeper ]] || wait_until 5 no_worker
    no_worker || fail "it outlived: $how"
    cli DEL rlock:job
  done
  kill -KILL "$INIT"
}

@test "what nsenter left with another init is killed too when the guard is, which has reaped the command" {
  container
  run_inside --at-end wait -- 'exit 0'
  wait_for_text 'waiting for what it left running' "$T/job.err"
  kill -KILL "$(guard_of "$PID")"
  finish "$PID"
  exits 70
  no_worker
  absent rlock:job
  kill -KILL "$INIT"
}

@test "--at-end wait and kill see what nsenter left with another init" {
  container
  run_inside --at-end kill --kill-after 200ms -- 'exit 0'
  finish "$PID"
  exits 0
  no_worker
  absent rlock:job
  rm "$T/worker"
  run_inside --at-end wait -- 'exit 0'
  wait_for_text 'waiting for what it left running' "$T/job.err"
  exists rlock:job
  kill -KILL "$(workers)"
  finish "$PID"
  exits 0
  absent rlock:job
  kill -KILL "$INIT"
}

# ---- names and priorities

@test "the guard's name: pkill and killall of rlock hit the keeper alone" {
  hold job
  GUARD=$(guard_of "$HOLDER")
  [[ $(<"/proc/$HOLDER/comm") == rlock ]]
  pgrep rlock | grep -qx "$HOLDER"
  ! pgrep rlock | grep -qx "$GUARD" || fail "pkill rlock hits it"
  ! pgrep -f 'rlock run' | grep -qx "$GUARD" || fail "pkill -f hits it"
}

@test "the guard's command line: pkill -f of the command's name hits the keeper and the command, and leaves nothing behind" {
  printf '#!/bin/sh\nsleep 600 &\necho $! >%s/left\nwait\n' "$T" >"$T/nightly-export.sh"
  chmod +x "$T/nightly-export.sh"
  start job rlock run --key job -- "$T/nightly-export.sh"
  wait_until "$PATIENCE" test -s "$T/left"
  GUARD=$(guard_of "$PID")
  same "$(tr -d '\0' <"/proc/$GUARD/cmdline")" guard
  pkill -KILL -f "$T/nightly-export.sh"
  finish "$PID"
  exits 137
  wait_until "$PATIENCE" ended "$(<"$T/left")"
}

ended() { ! kill -0 "$1" 2>/dev/null; } # PID

@test "a guard of root's runs before any command, even a real-time one" {
  ((EUID == 0)) || skip "only root may ask for a real-time priority"
  hold job
  [[ $(chrt -p $$) ]] && chrt -f 1 true 2>/dev/null || skip "this machine allows no real-time priority"
  contains "$(chrt -p "$(guard_of "$HOLDER")")" 'priority: 99'
  contains "$(chrt -p "$(guard_of "$(guard_of "$HOLDER")")")" SCHED_OTHER
}

@test "a PID namespace for a command, as the README gives it: it hears TERM, and dies when both of our processes are killed" {
  local private=(unshare -pf --mount-proc --kill-child sh -c '"$@"; exit' sh)
  "${private[@]}" true 2>/dev/null || skip "this machine has no namespaces, or they may not be made here"
  try run --key job -- "${private[@]}" sh -c 'exit 7'
  exits 7
  start job rlock run --key job -- "${private[@]}" sh -c 'trap "echo tidied up; exit 3" TERM; echo ready; while :; do sleep .02; done'
  wait_for_text ready "$T/job.out"
  kill "$PID"
  finish "$PID"
  exits 3
  contains "$(<"$T/job.out")" 'tidied up'
  start job rlock run --key job -- "${private[@]}" sh -c 'setsid sleep 600 & echo ready; wait'
  wait_for_text ready "$T/job.out"
  GUARD=$(guard_of "$PID")
  kill -KILL "$PID" "$GUARD"
  wait_until 5 no_leftovers
}

# ---- signals to whole groups

@test "the guard is in a group of its own: kill -9 of the caller's group leaves no process" {
  start job setsid rlock run --key job -- python3 "$HERE/witness.py" stamp "$T/stamps" "${ALL[@]}"
  wait_for_text ready "$T/job.out"
  KILLED=$(now_ms)
  kill -KILL -- "-$PID"
  wait_until 5 no_witnesses
  silent_since $((KILLED + 1000)) # its lease is 30 s
}

@test "timeout -k: TERM, then KILL to the whole group leaves no process" {
  start job timeout -k 0.3 60 rlock run --key job -- python3 "$HERE/witness.py" stamp "$T/stamps" "${ALL[@]}"
  wait_for_text ready "$T/job.out"
  kill "$PID" # as timeout does when the time is over
  finish "$PID"
  exits 137
  wait_until 5 no_witnesses
}

@test "a job that is stopped as a group: the command is dead before the lease ends" {
  start job setsid rlock run --key job --ttl 3 -- python3 "$HERE/witness.py" stamp "$T/stamps" "${ALL[@]}"
  wait_for_text ready "$T/job.out"
  kill -STOP -- "-$PID"
  wait_until "$PATIENCE" no_witnesses
  in_time
  kill -CONT -- "-$PID"
  finish "$PID"
  exits 76
}

# ---- messages that must not be lost

@test "the keeper learns of the command's end however full the connection is, and releases the lock" {
  start job rlock run -v --key job --ttl 20 -- sleep 600
  wait_for_text 'renewed job' "$T/job.err" # from then on it has a whole lease
  COMMAND=$(guard_of "$(guard_of "$PID")")
  freeze "$PID"
  python3 - "$COMMAND" <<'END_OF_SCRIPT'
import os, signal, sys, time
pid = int(sys.argv[1])
for _ in range(700):  # the guard reports each stop: more messages than a socket holds
    os.kill(pid, signal.SIGSTOP)
    time.sleep(0.0008)
    os.kill(pid, signal.SIGCONT)
    time.sleep(0.0008)
os.kill(pid, signal.SIGKILL)
END_OF_SCRIPT
  wait_until "$PATIENCE" gone "$COMMAND"
  kill -CONT "$PID"
  finish "$PID"
  exits 137
  absent rlock:job
}
