# rlock run: signals sent to it, and what the command inherits: none of our descriptors, signal state, umask or limits.

load ../support/helpers
load ../support/supervision

# A command that notes every signal and ends on ALRM.
notes_signals() { # [RUN-OPTION...]
  cat >"$T/notes.py" <<'END_OF_SCRIPT'
import os, signal, sys
numbers = {getattr(signal, "SIG" + name) for name in sys.argv[1:]}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers | {signal.SIGALRM})
os.write(1, b"ready %d\n" % os.getpid())
while (number := signal.sigwait(numbers | {signal.SIGALRM})) != signal.SIGALRM:
    print(number.name[3:], flush=True)
END_OF_SCRIPT
  start job "${WRAP[@]}" rlock run --key job "$@" -- python3 "$T/notes.py" TERM INT HUP QUIT USR1 USR2 WINCH CONT TSTP
  wait_for_text ready "$T/job.out"
  read -r _ COMMAND <"$T/job.out"
}

noted() { sed -n '2,$p' "$T/job.out" | paste -sd ' '; }

# ---- passed on

@test "each signal reaches the command once, and the command decides how to react" {
  local name names=(TERM INT HUP QUIT USR1 USR2 WINCH CONT)
  notes_signals --kill-after 5 --ttl 30
  for name in "${names[@]}"; do
    kill "-$name" "$PID"
    wait_for_text "$name" "$T/job.out"
  done
  kill -ALRM "$COMMAND"
  finish "$PID"
  exits 0
  same "$(noted)" "${names[*]}"
  same "$(grep -v 'too early' "$T/job.err")" 'rlock: job: SIGTERM is passed on to the command; another one after 5s kills it'
  absent rlock:job
}

@test "a keeper that aborts, as when an invariant of its own is broken: the command is dead at once" {
  start job rlock run --key job -- sh -c 'echo ready; exec sleep 600'
  wait_for_text ready "$T/job.out"
  kill -ABRT "$PID"
  finish "$PID"
  exits 134
  wait_until 5 no_leftovers
}

@test "a command that has left its process group hears of TERM" {
  start job rlock run --key job -- python3 -c 'import os, time
os.setpgid(0, os.getpgid(os.getppid()))
print("ready", flush=True)
time.sleep(600)'
  wait_for_text ready "$T/job.out"
  kill "$PID"
  finish "$PID"
  exits 143
}

@test "a signal to the whole group reaches the command once too" {
  WRAP=(setsid)
  notes_signals
  kill -USR1 -- "-$PID" # setsid has made it a group of its own
  wait_for_text USR1 "$T/job.out"
  kill -USR2 "$PID"
  wait_for_text USR2 "$T/job.out"
  kill -ALRM "$COMMAND"
  finish "$PID"
  exits 0
  same "$(noted)" 'USR1 USR2'
}

@test "a command that somebody else's signal ended: one line says which, but for INT and PIPE, of which shells say nothing" {
  local name
  for name in KILL TERM SEGV USR1; do
    try run --key job -- sh -c "ulimit -c 0; kill -$name \$\$"
    exits $((128 + $(kill -l "$name")))
    same "$ERR" "rlock: job: the command was killed by SIG$name"
  done
  for name in INT PIPE; do
    try run --key job -- sh -c "kill -$name \$\$"
    exits $((128 + $(kill -l "$name")))
    same "$ERR" ''
  done
}

@test "-q: a command that was killed by a signal nobody sent through rlock is told; one that rlock passed on is not" {
  try run --key job -q -- sh -c 'kill -KILL $$'
  exits 137
  same "$ERR" 'rlock: job: the command was killed by SIGKILL'
  start job rlock run --key job -q -- sh -c 'echo ready; exec sleep 600'
  wait_for_text ready "$T/job.out"
  kill -USR1 "$PID"
  finish "$PID"
  exits 138
  same "$(<"$T/job.err")" ''
}

@test "a command that rlock's own signal ended: no second line" {
  try run --key job --max-runtime 100ms -- sleep 600
  exits 124
  same "$ERR" 'rlock: job: --max-runtime 100ms is over; stopping the command'
  hold job
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  exits 143
  same "$(wc -l <"$T/holder.err")" 1
}

@test "128+n when the signal that was passed on ends the command, and the lock is released" {
  local name number said
  while read -r name number; do
    # GNU parallel, which runs the tests, ignores ALRM.
    start holder env --default-signal rlock run --key job -- sh -c 'echo up; exec sleep 600'
    wait_for_text up "$T/holder.out"
    kill "-$name" "$PID"
    finish "$PID"
    exits "$number"
    said="rlock: job: the command was killed by SIG$name"
    [[ $name != @(INT|TERM) ]] || said="rlock: job: SIG$name is passed on to the command; another one after 5s kills it"
    same "$(<"$T/holder.err")" "$said"
    absent rlock:job
  done <<<$'HUP 129\nINT 130\nQUIT 131\nUSR1 138\nUSR2 140\nTERM 143\nALRM 142\nPROF 155\nPWR 158'
}

@test "a real-time signal reaches the command, which is not told by it to stop" {
  start holder rlock run --key job -- bash -c 'trap "echo told; exit 3" RTMIN+5; echo up; while :; do sleep 0.05; done'
  wait_for_text up "$T/holder.out"
  kill -RTMIN+5 "$PID"
  finish "$PID"
  exits 3
  contains "$(<"$T/holder.out")" told
  absent rlock:job
}

@test "a signal that comes twice at once, as from timeout(1), is told once" {
  notes_signals
  kill -TERM "$PID"
  read -rt 0.02 <>"$T/nothing" || true # else both may be delivered as one
  kill -TERM "$PID"
  kill -USR1 "$PID"
  wait_for_text USR1 "$T/job.out"
  same "$(<"$T/job.err")" 'rlock: job: SIGTERM is passed on to the command; another one after 5s kills it'
  kill -ALRM "$COMMAND"
  finish "$PID"
}

@test "a second TERM or INT kills the command once --kill-after has passed since the first, and not sooner" {
  notes_signals --kill-after 300ms
  kill -TERM "$PID"
  wait_for_text TERM "$T/job.out"
  kill -INT "$PID"
  wait_for_text INT "$T/job.out"
  matches "$(tail -n 1 "$T/job.err")" '^rlock: job: SIGINT again, too early to kill the command: send it once more in [0-9]+ms$'
  sleep 0.3
  kill -INT "$PID"
  finish "$PID"
  exits 137
  same "$(noted)" 'TERM INT'
  same "$(grep -v 'too early' "$T/job.err")" 'rlock: job: SIGTERM is passed on to the command; another one after 300ms kills it
rlock: job: SIGINT again: killing the command'
  absent rlock:job
}

@test "signals that were ignored when rlock started stay ignored, for it and for the command" {
  local ignored='TERM,INT,HUP,USR1,USR2,QUIT,PIPE,TSTP'
  start job env --ignore-signal="$ignored" rlock run --key job -- \
    sh -c 'grep ^SigIgn /proc/self/status; until [ -e "$0" ]; do sleep .02; done' "$T/end"
  wait_for_text SigIgn "$T/job.out"
  same "$(<"$T/job.out")" "$(env --ignore-signal="$ignored" grep ^SigIgn /proc/self/status)"
  kill -TERM "$PID"
  kill -INT "$PID"
  kill -HUP "$PID"
  kill -QUIT "$PID"
  touch "$T/end"
  finish "$PID"
  exits 0
  absent rlock:job
}

@test "nohup rlock run survives a hang-up, and so does its command" {
  start job nohup rlock run --key job -- sh -c 'echo ready; until [ -e "$0" ]; do sleep .02; done' "$T/end"
  wait_for_text ready "$T/job.out"
  kill -HUP "$PID"
  kill -HUP "$(guard_of "$PID")"
  touch "$T/end"
  finish "$PID"
  exits 0
}

@test "a command that ignores TERM is killed when its lease is lost, even if it ignored it before rlock did" {
  start job env --ignore-signal=TERM rlock run --key job --ttl 600ms -- sleep 600
  wait_held job
  cli DEL rlock:job
  finish "$PID"
  exits 76
}

# ---- at other times than while the command runs

@test "a signal while waiting: rlock leaves the queue, 128+n, and the command is not started" {
  local name number
  hold job
  while read -r name number; do
    start "waiter-$name" rlock run --key job -- touch "$T/ran"
    wait_for_text waiting "$T/waiter-$name.err"
    wait_until "$PATIENCE" exists '{rlock:job}:queue'
    kill "-$name" "$PID"
    finish "$PID"
    exits "$number"
    contains "$(<"$T/waiter-$name.err")" "rlock: interrupted by SIG$name before job was acquired"
    absent '{rlock:job}:queue'
  done <<<$'HUP 129\nQUIT 131\nTERM 143\nUSR1 138'
  [[ ! -e $T/ran ]]
}

@test "a signal while the lock is being acquired: no lock and no process is left behind" {
  try run --key job -- true # the server has been reached, the scripts are known
  start_proxy
  network delay 0.3
  start job rlock run --key job -- touch "$T/ran"
  wait_held job
  kill -TERM "$PID"
  finish "$PID"
  exits 143
  [[ ! -e $T/ran ]]
  wait_until "$PATIENCE" absent rlock:job
}

@test "signals while the lock is being released: it is released all the same, and the status is the command's" {
  start job rlock run --key job -- sh -c 'kill -STOP "$0"; exit 3' "$REDIS_PID"
  wait_until "$PATIENCE" state_is "$REDIS_PID" T
  wait_until "$PATIENCE" no_family "$PID"
  kill -TERM "$PID"
  kill -INT "$PID"
  kill -HUP "$PID"
  kill -CONT "$REDIS_PID"
  finish "$PID"
  exits 3
  wait_until "$PATIENCE" absent rlock:job # on a machine that needs a second for this, the signals end the wait for the answer
}

no_family() { [[ -z $(family_of "$1") ]]; } # KEEPER: its guard has ended, or is a zombie

@test "SIGCHLD ignored by the caller is not ignored by rlock, which has children to look up names" {
  local ignored
  hold job
  start waiter env --ignore-signal=CHLD rlock acquire job
  wait_for_text 'waiting for job' "$T/waiter.err"
  ignored=$(sed -n 's/^SigIgn:.//p' "/proc/$PID/status")
  (((0x$ignored >> 16 & 1) == 0)) || fail "$ignored"
}

@test "SIGCHLD ignored by the caller: statuses are still seen, and the command finds it ignored" {
  start job env --ignore-signal=CHLD rlock run --key job -- grep SigIgn /proc/self/status nothing
  finish "$PID"
  exits 2
  same "$(<"$T/job.out")" "/proc/self/status:$(env --ignore-signal=CHLD grep SigIgn /proc/self/status)"
  absent rlock:job
}

@test "signals blocked by the caller: rlock gets them, and the command starts with none blocked" {
  start job env --block-signal=TERM,CHLD,ALRM rlock run --key job -- sh -c 'grep ^SigBlk /proc/self/status; exec sleep 600'
  wait_for_text SigBlk "$T/job.out"
  matches "$(<"$T/job.out")" '^SigBlk:.0+$'
  kill -TERM "$PID"
  finish "$PID"
  exits 143
}

@test "a signal that arrives as the command ends changes nothing" {
  notes_signals
  GUARD=$(guard_of "$PID")
  freeze "$GUARD"
  kill -ALRM "$COMMAND"
  wait_until "$PATIENCE" gone "$COMMAND"
  kill -USR1 "$PID"
  wait_until "$PATIENCE" state_is "$PID" S # it has read the signal and sleeps again
  kill -USR2 "$PID"
  kill -CONT "$GUARD"
  finish "$PID"
  exits 0
  same "$(<"$T/job.err")" ''
}

# ---- what the command inherits

# What a process inherits, without what differs between any two processes.
LOOK='import os, re, resource, signal
for line in open("/proc/self/status"):
    if not re.match("(Pid|PPid|NSpid|Tgid|NStgid|NSpgid|NSsid|Vm|Rss|Hugetlb|Threads|.*ctxt|SigQ|Name|Cpus|Mems)", line):
        print(line.strip())
print(open("/proc/self/limits").read(), os.getcwd(), os.getpriority(os.PRIO_PROCESS, 0))
print(open("/proc/self/oom_score_adj").read(), open("/proc/self/timerslack_ns").read(), os.sched_getscheduler(0))
for fd in os.listdir("/proc/self/fd"):
    try:
        print(fd, os.readlink("/proc/self/fd/" + fd))
    except OSError:
        pass'

as_without() { # PREFIX...: a command inherits the same from "PREFIX rlock run" as from "PREFIX"
  rm -f "$T/found"
  FOUND=$T/found timeout 20 "$@" python3 -c "import sys, os; sys.stdout = os.fdopen(os.open(os.environ['FOUND'],
    os.O_CREAT | os.O_WRONLY | os.O_APPEND), 'w'); $LOOK" 3>&- 4>&-
  mv "$T/found" "$T/without"
  FOUND=$T/found timeout 20 "$@" rlock run --key job -- python3 -c "import sys, os; sys.stdout = os.fdopen(
    os.open(os.environ['FOUND'], os.O_CREAT | os.O_WRONLY | os.O_APPEND), 'w'); $LOOK" 3>&- 4>&-
  diff "$T/without" "$T/found"
  [[ -s $T/found ]]
}

@test "the command inherits nothing of rlock's own: descriptors, signals, umask, limits, priority" {
  umask 057
  ulimit -Sn 200
  ulimit -Sc 0
  as_without env 7<"$T/bin"
}

@test "the command inherits nothing of rlock's own, as an ordinary user" {
  ordinary_user
  as_without "${AS_USER[@]}"
}

@test "descriptors 0, 1 or 2 that are closed stay closed, and rlock works" {
  as_without sh -c 'exec "$@" <&-' sh
  as_without sh -c 'exec "$@" >&-' sh
  as_without sh -c 'exec "$@" 2>&-' sh
  as_without sh -c 'exec "$@" <&- >&- 2>&-' sh
  absent rlock:job
}
