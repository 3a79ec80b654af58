# rlock run on a terminal whose user is terminal.py: job control, and programs that read from the terminal.

load ../support/helpers
load ../support/supervision

# Makes a command that notes each HUP in a file, and ends a while after the first.
notes_hang_ups() {
  cat >"$T/notes.py" <<'END_OF_SCRIPT'
import os, signal, sys
out = open(sys.argv[1], "w", buffering=1)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP, signal.SIGTERM})
os.write(1, b"ready\n")
while number := signal.sigtimedwait({signal.SIGHUP, signal.SIGTERM}, 0.5 if out.tell() else 20):
    print(signal.Signals(number.si_signo).name, file=out)
END_OF_SCRIPT
}

@test "Ctrl-C reaches the command once; rlock dies of INT itself, so that the calling script stops too" {
  echo 'rlock run --key job -- sh -c "trap \"echo once; trap - INT; kill -INT \$\$\" INT; echo ready; while :; do sleep .1; done"
    echo the script goes on' >"$T/script"
  user bash "$T/script" @ 'expect ready' 'key C'
  exits 130
  same "$(grep -c once <<<"$SHOWN")" 1
  [[ $SHOWN != *goes\ on* ]] || fail "$SHOWN"
  absent rlock:job
}

@test "Ctrl-C on a command whose output is piped on: the calling script stops too" {
  echo 'rlock run --key job -- sh -c "echo ready >/dev/tty; exec sleep 600" | cat
    echo the script goes on' >"$T/script"
  user bash "$T/script" @ 'expect ready' 'key C'
  exits 130
  [[ $SHOWN != *goes\ on* ]] || fail "$SHOWN"
  absent rlock:job
}

@test "Ctrl-C on a command whose output is captured: the calling script stops too" {
  echo 'out=$(rlock run --key job -- sh -c "echo ready >/dev/tty; exec sleep 600")
    echo the script goes on' >"$T/script"
  user bash "$T/script" @ 'expect ready' 'key C'
  exits 130
  [[ $SHOWN != *goes\ on* ]] || fail "$SHOWN"
  absent rlock:job
}

@test "Ctrl-C while the lock is being released: the calling script stops, although the command has ended" {
  echo "rlock run --key job --report $T/report -- sh -c 'kill -STOP \$1; echo ready' - ${SERVERS[0]}
    echo the script goes on" >"$T/script"
  user bash "$T/script" @ 'expect ready' 'do sleep 0.3' 'key C' 'do sleep 0.2' "do kill -CONT ${SERVERS[0]}"
  exits 130
  [[ $SHOWN != *goes\ on* ]] || fail "$SHOWN"
  same "$(jq -c '[.outcome, .exit_status, .command_status]' "$T/report")" '["completed",130,0]'
}

@test "an INT that is sent after the window was resized is no Ctrl-C: rlock exits by status" {
  cat >"$T/run.py" <<'END_OF_SCRIPT'
import pathlib, subprocess, sys
notes_sizes = 'trap "echo resized >/dev/tty" WINCH; echo ready >/dev/tty; while :; do sleep .1; done'
run = subprocess.Popen(["rlock", "run", "--key", "job", "--", "sh", "-c", notes_sizes], stdout=subprocess.PIPE)
pathlib.Path(sys.argv[1]).write_text(str(run.pid))
print("status", run.wait())
END_OF_SCRIPT
  user python3 "$T/run.py" "$T/pid" @ 'expect ready' "until test -s $T/pid" resize 'expect resized' \
    "do kill -INT \$(cat $T/pid)" 'expect status'
  exits 0
  contains "$SHOWN" 'status 130'
}

# sends SIGNAL COMMAND WORD...: a script whose user leaves the terminal to rlock sends it SIGNAL once the command is ready
sends() {
  cat >"$T/run.py" <<'END_OF_SCRIPT'
import pathlib, subprocess, sys
run = subprocess.Popen(["rlock", "run", "job", "--once", "v1", "--kill-after", "100ms", "--", "sh", "-c", sys.argv[2]])
pathlib.Path(sys.argv[1]).write_text(str(run.pid))
print("status", run.wait())
END_OF_SCRIPT
  user python3 "$T/run.py" "$T/pid" "$2" @ 'expect ready' "until test -s $T/pid" "do kill -$1 \$(cat $T/pid)" "${@:3}"
  exits 0
}

@test "an INT that is sent while the command has the terminal is no Ctrl-C: the calling script goes on" {
  sends INT 'echo ready; exec sleep 600' 'expect status'
  contains "$SHOWN" 'status 130'
}

@test "a HUP that is sent while the command has the terminal is no hang-up: what ends with 0 later is done" {
  sends HUP "trap 'echo again' HUP; echo ready; until [ -e $T/go ]; do sleep .05; done" 'expect again' 'do sleep 2.5' "do touch $T/go" \
    'expect status'
  contains "$SHOWN" 'status 0'
  try run job --once v1 -- echo repeated
  exits 0
  same "$OUT" ''
}

@test "a command that handles Ctrl-C decides itself" {
  user rlock run --key job -- sh -c 'trap "echo handled; exit 9" INT; echo ready; while :; do sleep .1; done' @ \
    'expect ready' 'key C'
  exits 9
  same "$SHOWN" $'ready\n^Chandled'
  absent rlock:job
}

# A script whose worker ignores INT and HUP, as the background jobs of scripts ignore INT; it ends by itself when told.
with_worker() { # ON-SIGNAL
  cat >"$T/script" <<END_OF_SCRIPT
$1
sh -c 'trap "" INT HUP; echo \$\$ >"$T/worker"; exec sleep 600' &
until [ -s "$T/worker" ]; do sleep .02; done
echo ready
wait
END_OF_SCRIPT
}

@test "Ctrl-C on a script that handles it and exits: its worker is dead before the lock is free, whatever the status" {
  local status
  for status in 130 0; do
    rm -f "$T/worker"
    with_worker "trap 'exit $status' INT"
    user rlock run --key job --kill-after 300ms -- bash "$T/script" @ 'expect ready' 'key C'
    exits "$status"
    gone "$(<"$T/worker")" || fail "the worker is alive"
    absent rlock:job
  done
}

@test "the terminal is closed on a script that handles it and exits: its worker is dead before the lock is free" {
  with_worker "trap 'exit 129' HUP"
  user "${SHELL_THERE[@]}" @ 'expect prompt>' "type rlock run --key job --kill-after 300ms -- bash $T/script" \
    'expect ready' 'hang-up'
  wait_until "$PATIENCE" absent rlock:job
  gone "$(<"$T/worker")" || fail "the worker is alive"
}

@test "what Ctrl-C or a closed terminal has ended is neither done nor a failure, whatever the command makes of it" {
  local status
  for status in 0 130; do
    user rlock run --key job --once v1 --attempts 1 -- \
      sh -c "trap 'exit $status' INT; echo ready; while :; do sleep .1; done" @ 'expect ready' 'key C'
    exits "$status"
    with_worker "trap 'exit $status' HUP"
    user "${SHELL_THERE[@]}" @ 'expect prompt>' \
      "type rlock run job --once v1 --attempts 1 --kill-after 300ms -- bash $T/script" 'expect ready' 'hang-up'
    wait_until "$PATIENCE" absent rlock:job
    rm "$T/worker"
  done
  try run job --once v1 --attempts 1 -- echo ran
  same "$OUT" ran
}

@test "a command that sends itself INT on a terminal has failed, and the calling script goes on" {
  echo 'rlock run --key job --once v1 --attempts 1 -- sh -c "kill -INT \$\$"
    echo the script goes on' >"$T/script"
  user bash "$T/script" @ 'expect goes on'
  try run job --once v1 --attempts 1 -- true
  exits 75
  contains "$ERR" 'last SIGINT'
}

@test "without a Ctrl-C a script on a terminal leaves running what it likes" {
  with_worker 'trap "" TERM'
  sed -i 's/^wait$/exit 0/' "$T/script"
  user rlock run --key job -- bash "$T/script" @ 'expect ready'
  exits 0
  absent rlock:job
  ! gone "$(<"$T/worker")" || fail "the worker is dead"
  kill -KILL "$(<"$T/worker")"
}

@test "a second Ctrl-C, once --kill-after has passed, kills a command that does not have the terminal" {
  echo 'rlock run --key job --kill-after 300ms -- sh -c "trap \"echo told >/dev/tty\" INT; echo ready >/dev/tty; while :; do sleep .02; done" | cat' >"$T/script"
  user bash "$T/script" @ 'expect ready' 'key C' 'expect told' 'do sleep 0.4' 'key C'
  contains "$SHOWN" 'SIGINT again: killing the command'
  wait_until "$PATIENCE" absent rlock:job
}

@test "Ctrl-C while waiting: the queue is left, and the calling script stops" {
  hold job
  echo 'rlock run --key job -- true
    echo the script goes on' >"$T/script"
  user bash "$T/script" @ 'expect waiting' 'key C'
  exits 130
  [[ $SHOWN != *goes\ on* ]] || fail "$SHOWN"
  wait_until "$PATIENCE" absent '{rlock:job}:queue' # the shell is gone before rlock is
}

@test "Ctrl-\\: the command dies of QUIT, and rlock too" {
  user rlock run --key job -- sh -c 'echo ready; exec sleep 600' @ 'expect ready' "key \\"
  exits 131
  absent rlock:job
}

@test "Ctrl-\\: rlock dies without a core file, which would tell the password" {
  cat >"$T/run.py" <<'END_OF_SCRIPT'
import os, resource, signal, sys
signal.signal(signal.SIGQUIT, lambda *_: None)  # what we start has the default again
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
status = os.waitpid(os.spawnvp(os.P_NOWAIT, sys.argv[1], sys.argv[1:]), 0)[1]
print(signal.Signals(os.WTERMSIG(status)).name, "with a core" if os.WCOREDUMP(status) else "without a core")
END_OF_SCRIPT
  cd "$T"
  user python3 run.py sh -c 'echo ready; exec sleep 600' @ 'expect ready' "key \\" 'expect SIGQUIT'
  [[ $SHOWN == *'with a core'* ]] || skip "this machine makes no core files"
  user python3 run.py rlock run job -- sh -c 'echo ready; exec sleep 600' @ 'expect ready' "key \\" 'expect SIGQUIT'
  contains "$SHOWN" 'SIGQUIT without a core'
}

@test "a program reads from the terminal" {
  user "${SHELL_THERE[@]}" @ 'expect prompt>' 'type rlock run --key job -- sh -c "read line; echo got-\$line"' \
    "until $REDIS_CLI -s $REDIS_SOCK EXISTS rlock:job | grep -q 1" 'type some words' 'expect got-some words' \
    'expect prompt>' 'type exit $?'
  exits 0
}

@test "the shell has its terminal back afterwards, even when the command was killed" {
  user "${SHELL_THERE[@]}" @ 'expect prompt>' 'type rlock run --key job --ttl 1 -- sh -c "echo rea\dy; exec sleep 600"' \
    'expect ready' "do $REDIS_CLI -s $REDIS_SOCK DEL rlock:job" 'expect prompt>' 'type read line; echo got-$line' \
    'type words' 'expect got-words' 'type exit 4'
  exits 4
}

@test "nested: the inner rlock is killed; the script that called the outer one has its terminal back" {
  echo 'rlock run --key job -- rlock run --key inner -- sh -c "echo ready; exec sleep 600"
    read line; echo got-$line' >"$T/script"
  user "${SHELL_THERE[@]}" @ 'expect prompt>' "type bash $T/script" 'expect ready' \
    "do kill -KILL \$(rlock status --json inner | jq '.[].holders[].pid')" 'expect killed by SIGKILL' 'type words' \
    'expect got-words' 'expect prompt>' 'type exit 4'
  exits 4
}

@test "rlock is killed: the script that called it has its terminal back, as it was before" {
  echo 'rlock run --key "$1" -- sh -c "stty -echo -icanon; echo ready; exec sleep 600"
    until ps -o pgid=,tpgid= $$ | { read -r own fore && [ $own = $fore ]; }; do sleep .02; done
    read -r line; echo got-$line; stty -a' >"$T/script"
  user bash "$T/script" one @ 'expect ready' "do kill -KILL \$(rlock status --json one | jq '.[].holders[].pid')" \
    'expect rlock was killed' 'type words' 'expect got-words' 'expect echoke'
  exits 0
  [[ ${SHOWN#*got-words} == *" icanon iexten echo "* ]] || fail "$SHOWN"
  user "${SHELL_THERE[@]}" @ 'expect prompt>' "type bash $T/script two" 'expect ready' \
    "do kill -KILL \$(rlock status --json two | jq '.[].holders[].pid')" \
    'expect rlock was killed' 'type words' 'expect got-words' 'expect prompt>' 'type exit 4'
  exits 4
}

@test "rlock is killed, and its command is a shell with a job in the foreground: the script can read at once" {
  local key steps=()
  echo 'for key; do
      rlock run "$key" -- bash -mc "(echo $key is ready; exec sleep 600); true"
      read -r line && echo "$key: $line" || echo "$key: failed"
    done' >"$T/script"
  for key in a b c d e; do
    steps+=("expect $key is ready" "do kill -KILL \$(rlock status --json $key | jq '.[].holders[].pid')"
      'type words' "expect $key: ")
  done
  user bash "$T/script" a b c d e @ "${steps[@]}"
  exits 0
  # The script and the guard hear of the death at the same time; on a busy machine the script may be faster.
  (($(grep -c ': words' <<<"$SHOWN") >= 3)) || fail "$SHOWN"
}

@test "rlock is killed, and its command is a shell with a pipeline in the foreground: the script has its terminal back" {
  # The first process of the pipeline has ended by then.
  echo 'rlock run --key job -- bash -mc "true | (echo ready; exec sleep 600); true"
    until ps -o pgid=,tpgid= $$ | { read -r own fore && [ $own = $fore ]; }; do sleep .02; done
    read -r line; echo got-$line' >"$T/script"
  user bash "$T/script" @ 'expect ready' "do kill -KILL \$(rlock status --json job | jq '.[].holders[].pid')" \
    'expect rlock was killed' 'type words' 'expect got-words'
  exits 0
}

@test "the guard is killed before it has told that the command has the terminal: the script has it back" {
  can_trace
  cat >"$T/script" <<'END_OF_SCRIPT'
strace -f -qq -e signal=none -e trace=sendto -e inject=sendto:delay_enter=1000000:when=2 -o /dev/null \
  rlock run --key job -- sh -c 'echo ready; exec sleep 600' # it is the guard that sends twice within a second
echo over
read -r line; echo "got-$line"
END_OF_SCRIPT
  user bash "$T/script" @ 'expect ready' "do kill -KILL \$(pgrep -x lock-guard -P \$(rlock status --json job | jq '.[].holders[].pid'))" \
    'expect over' 'type words' 'expect got-words'
  exits 0
}

@test "in a PID namespace that was entered from a terminal, the terminal stays usable, whether the command reads from it or not" {
  unshare --pid --fork --mount-proc true 2>/dev/null || skip "no namespaces here"
  echo 'unshare --pid --fork --mount-proc rlock run --key job -- true; echo "ended with $?"
    read -r line; echo "got-$line"
    unshare --pid --fork --mount-proc rlock run --key job -- cat; echo "ended with $?"
    read -r line; echo "got-$line"' >"$T/script"
  user bash "$T/script" @ 'expect ended with 0' 'type words' 'expect got-words' 'expect ended with 129' 'type more' 'expect got-more'
  exits 0
  user "${SHELL_THERE[@]}" @ 'expect prompt>' 'type unshare --pid --fork --mount-proc rlock run --key job -- cat' \
    'expect killed by SIGHUP' 'expect prompt>' \
    "type unshare --pid --fork --mount-proc sh -c 'rlock run --key job -- cat; echo ended with \$?'" 'expect ended with 129' \
    'expect prompt>' 'type exit 4'
  exits 4
}

@test "rlock is killed: the modes that the script sets as soon as it has its terminal back stay" {
  can_trace
  cat >"$T/script" <<'END_OF_SCRIPT'
(until [ -e "$1" ]; do sleep .02; done
  until ps -o pgid=,tpgid= $$ | { read -r own fore && [ $own = $fore ]; }; do sleep .02; done
  stty -echo </dev/tty) &
strace -f -qq -e signal=none -e trace=ioctl -e inject=ioctl:delay_exit=300000 -o /dev/null \
  rlock run --key job -- sh -c 'touch "$0"; echo ready; exec sleep 600' "$1"
wait; stty -a; stty echo; echo over
END_OF_SCRIPT
  user bash "$T/script" "$T/lent" @ 'expect ready' \
    "do kill -KILL \$(rlock status --json job | jq '.[].holders[].pid')" 'expect over'
  exits 0
  contains "$SHOWN" ' -echo '
}

@test "a command that is killed leaves the terminal as it was, and one that ends by itself as it likes" {
  echo 'rlock run --key job --max-runtime 1s --kill-after 100ms -- sh -c "trap \"\" TERM; stty -echo; exec sleep 600"
    stty -a; echo; echo between
    rlock run --key job -- stty -echo
    stty -a; stty echo' >"$T/script"
  user bash "$T/script" @ 'expect between' 'expect -echo '
  exits 0
  [[ ${SHOWN%between*} != *-echo\ * ]] || fail "$SHOWN"
}

@test "a command that is killed does not leave the terminal non-blocking to the script" {
  cat >"$T/unblock.py" <<'END_OF_SCRIPT'
import os, time
os.set_blocking(0, False)
print("ready", flush=True)
time.sleep(600)
END_OF_SCRIPT
  echo "rlock run --key job --max-runtime 1s -- python3 '$T/unblock.py'
    rlock run --key two -- python3 '$T/unblock.py'
    python3 -c 'import os; print(\"it blocks:\", os.get_blocking(0))'" >"$T/script"
  user bash "$T/script" @ 'expect ready' 'expect ready' "do kill -KILL \$(rlock status --json two | jq '.[].holders[].pid')" \
    'expect rlock was killed' 'expect it blocks: True'
  exits 0
}

@test "Ctrl-Z and fg: both stop, the shell prompts, and a message tells how long the lease is; both go on, and the lease is renewed" {
  user "${SHELL_THERE[@]}" @ 'expect prompt>' \
    'type rlock run --key job --ttl 30 -v -- sh -c "echo rea\dy; read line; echo got-\$line"' 'expect ready' \
    'key Z' 'expect job is not renewed until this job continues; it is lost in 2' 'expect Stopped' 'expect prompt>' \
    'type echo \$((6*7))' 'type echo $((6*7))' 'expect 42' 'expect prompt>' \
    'type fg' 'expect renewed job' 'type words' 'expect got-words' 'expect prompt>' 'type exit $?'
  exits 0
  absent rlock:job
}

@test "Ctrl-Z, and fg when the lease is over: the command is dead by then, 76, and held_ms ends with it" {
  user "${SHELL_THERE[@]}" @ 'expect prompt>' \
    "type rlock run --key job --ttl 600ms --report $T/report -- sh -c \"echo rea\dy; exec sleep 600\"" 'expect ready' \
    'key Z' 'expect Stopped' 'expect prompt>' "until [ \$($REDIS_CLI -s $REDIS_SOCK EXISTS rlock:job) = 0 ]" \
    'do sleep 2' 'type fg' 'expect job: this job was stopped for longer than its lease lasts' 'expect lost job' \
    'expect prompt>' 'type exit $?'
  exits 76
  # What has come since rlock was started is at least those two seconds longer.
  jq -e 'def ms: (.[0:19] + "Z" | fromdate) * 1000 + (.[20:23] | tonumber);
         (.ended_at | ms) - (.started_at | ms) - .held_ms >= 1500' "$T/report" || fail "$(<"$T/report")"
}

@test "Ctrl-Z and bg: the command goes on without the terminal" {
  # The sleep begins before "ready": dash does not stop while a child that it vforked is stopped short of its exec.
  user "${SHELL_THERE[@]}" @ 'expect prompt>' \
    'type rlock run --key job -- sh -c "sleep 0.5 & echo rea\dy; wait; echo go\ne on"' 'expect ready' \
    'key Z' 'expect Stopped' 'expect prompt>' 'type bg' 'expect gone on' 'type wait; exit $?'
  exits 0
  absent rlock:job
}

@test "in the background it does not take the terminal; a command that reads is stopped until fg" {
  # The line comes just before the stop: a fg in between would have no effect.
  user "${SHELL_THERE[@]}" @ 'expect prompt>' \
    'type rlock run --key job -- sh -c "read line; echo got-\$line" &' 'expect is not renewed' \
    'type while jobs -r | grep -q .; do :; done; echo still \mine' 'expect still mine' 'expect prompt>' \
    'type fg' 'type words' 'expect got-words' 'expect prompt>' 'type exit $?'
  exits 0
}

@test "a command that reads in an orphaned background group, which no fg can reach, gets HUP, and rlock does not loop" {
  cat >"$T/orphan.py" <<'END_OF_SCRIPT'
import os, sys, time
if os.fork() == 0:
    os.setpgid(0, 0)
    leader = os.getpid()
    if os.fork() == 0:
        while os.getppid() == leader:
            time.sleep(0.01)
        os.execvp("rlock", ["rlock", "run", "--key", "job", "--", "sh", "-c", "read line </dev/tty; echo status $?"])
    os._exit(0)
os.wait()
time.sleep(600)
END_OF_SCRIPT
  user python3 "$T/orphan.py" @ "until $REDIS_CLI -s $REDIS_SOCK EXISTS '{rlock:job}:history' | grep -q 1" 'key C'
  (($(grep -c 'not renewed' <<<"$SHOWN") <= 1)) || fail "$(grep -c 'not renewed' <<<"$SHOWN") times"
}

@test "Ctrl-Z where no shell could continue the job, as by ssh -t: it is ignored, as by any program there" {
  local line
  export ASK='echo rea\dy >/dev/tty; read line </dev/tty; echo got-$line'
  for line in 'exec rlock run --key job -- sh -c "$ASK"' 'rlock run --key job -- sh -c "$ASK"; exit $?' \
    'rlock run --key job -- sh -c "$ASK" | cat'; do
    user bash -c "$line" @ 'expect ready' 'key Z' 'type words' 'expect got-words'
    exits 0
    [[ $SHOWN != *'not renewed'* ]] || fail "$SHOWN"
  done
}

@test "Ctrl-Z while rlock waits for the lock, where no shell could continue it: it is ignored too" {
  hold job
  user rlock run --key job -- echo go-on @ 'expect waiting for' 'key Z' 'do sleep 0.5' "do kill $HOLDER" 'expect go-on'
  exits 0
}

@test "Ctrl-Z while rlock waits for what the command has left: the shell gets its prompt, and fg goes on" {
  user "${SHELL_THERE[@]}" @ 'expect prompt>' \
    "type rlock run --key job --at-end wait -- sh -c '(until test -e $T/end; do sleep .02; done) & exit 5'" \
    'expect waiting for what' 'key Z' 'expect prompt>' 'type fg' "do touch $T/end" 'expect prompt>' 'type exit $?'
  exits 5
}

@test "SIGSTOP for the command alone, where no shell could continue rlock: the command stays stopped until CONT" {
  local stopped="grep -q 'State:.T' /proc/\$(cat $T/pid)/status"
  user rlock run --key job -- sh -c "echo \$\$ >$T/pid; echo ready; read line; echo got-\$line" @ 'expect ready' \
    "do kill -STOP \$(cat $T/pid)" "until $stopped" "do sleep 1; $stopped && touch $T/still" 'type words' \
    "do kill -CONT \$(cat $T/pid)" 'expect got-words'
  exits 0
  [[ -e $T/still ]] || fail "it was continued"
}

@test "a pager behind a pipe keeps the terminal" {
  user "${SHELL_THERE[@]}" @ 'expect prompt>' \
    'type rlock run --key job -- sh -c "echo first; sleep 600" | sh -c "read a; echo rea\dy; read b </dev/tty; echo got-\$b; kill -TERM 0"' \
    'expect ready' 'type words' 'expect got-words' 'expect prompt>' 'type exit 3'
  exits 3
  wait_until "$PATIENCE" absent rlock:job
}

@test "the terminal is closed: the shell's HUP and the kernel's reach the command once, and the lock is released" {
  notes_hang_ups
  user "${SHELL_THERE[@]}" @ 'expect prompt>' "type rlock run --key job -- python3 $T/notes.py $T/noted" \
    'expect ready' 'hang-up'
  wait_until "$PATIENCE" absent rlock:job
  same "$(<"$T/noted")" SIGHUP
}

@test "nested: the terminal is closed on the inner run: the script around it, which has not got HUP, ends too" {
  echo "rlock run --key inner -- sh -c 'echo ready; exec sleep 600'; sleep 0.5; touch $T/after" >"$T/script"
  user "${SHELL_THERE[@]}" @ 'expect prompt>' "type rlock run --key job -- bash $T/script" 'expect ready' 'hang-up'
  wait_until "$PATIENCE" absent rlock:job
  [[ ! -e $T/after ]] || fail "the script went on"
}

@test "the terminal of a run that leads its session is closed, as by ssh -t: the command gets one HUP" {
  notes_hang_ups
  user rlock run --key job -- python3 "$T/notes.py" "$T/noted" @ 'expect ready' 'hang-up'
  exits 0
  same "$(<"$T/noted")" SIGHUP
  absent rlock:job
}

@test "nested: the terminal of an outer run that leads its session is closed: the inner run's command gets one HUP" {
  notes_hang_ups
  user rlock run --key job -- rlock run --key inner -- python3 "$T/notes.py" "$T/noted" @ 'expect ready' 'hang-up'
  same "$(<"$T/noted")" SIGHUP
  absent rlock:job
}

@test "a script has the terminal back after a run" {
  echo 'rlock run --key job -- true
    read line; echo got-$line' >"$T/script"
  user bash "$T/script" @ 'type words' 'expect got-words'
  exits 0
}

@test "a command whose input or output is a pipe or a file gets the terminal when it reads from /dev/tty" {
  local line n=0
  for line in 'echo y | rlock run --key job -- sh -c "$ASK"' 'rlock run --key job -- sh -c "$ASK" </dev/null' \
    'rlock run --key job -- sh -c "$ASK" | cat' 'x=$(rlock run --key job -- sh -c "$ASK"); echo $x'; do
    export ASK='read b </dev/tty; echo got-$b'
    user "${SHELL_THERE[@]}" @ 'expect prompt>' "type $line" \
      "until $REDIS_CLI -s $REDIS_SOCK EXISTS rlock:job | grep -q 1" 'type words' 'expect got-words' \
      'expect prompt>' "type exit $((++n))"
    exits "$n"
  done
}
