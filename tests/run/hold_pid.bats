# acquire --hold-pid: a script's lock that does not outlive the script, and that a background process renews.

load ../support/helpers
load ../support/supervision

# beside KEY [OPTION...]: a shell that holds KEY for itself until the test ends it; SHELL_PID is its pid, $T/token its token
beside() {
  rm -f "$T/token" # of an earlier shell
  start shell sh -c 'token=$(rlock acquire --hold-pid $$ "$@") && echo "$token" >"$0" && exec sleep 600' \
    "$T/token" --key "$@"
  SHELL_PID=$PID
  wait_until "$PATIENCE" exists_or_gone "rlock:$1" "$SHELL_PID"
  wait_until "$PATIENCE" test -s "$T/token"
}

keeper_of() { # KEY: the pid that status shows
  try status --json "$1"
  jq '.[0].holders[0].pid' <<<"$OUT"
}

# The background process is gone.
no_keeper() {
  local pid
  for pid in $(leftovers); do
    [[ $(tr '\0' ' ' <"/proc/$pid/cmdline") != @(rlock|watch)" acquire "* ]] || return 1
  done
} 2>/dev/null # some end meanwhile

# When the lease ends, by our clock, or a little later: a process may take long to start.
ends_at() { # KEY
  local left
  left=$(cli PTTL "rlock:$1")
  echo $(($(now_ms) + left))
}

renewed() { # KEY: it was, since it is still there and its lease ends later than at END
  local now left
  now=$(now_ms)
  left=$(cli PTTL "rlock:$1")
  ((left > 0 && now + left > END + 100))
}

@test "the token is printed, the script goes on, the lock is renewed" {
  beside job --ttl 1
  matches "$(<"$T/token")" '^[0-9a-f]{32}$'
  for _ in 1 2 3 4; do
    END=$(ends_at job)
    wait_until 5 renewed job
  done
  same "$(grep -v 'short for this network' "$T/shell.err")" '' # which a busy machine makes it say
}

@test "the lock is released when the script ends, however it ends" {
  local signal
  for signal in TERM KILL; do
    beside job
    kill -"$signal" "$SHELL_PID"
    wait_until 5 absent rlock:job
  done
}

@test "the background process has a session and no descriptor of the caller's" {
  local keeper open
  exec 9>"$T/open"
  beside job
  exec 9>&-
  keeper=$(keeper_of job)
  same "$(ps -o sid= "$keeper" | tr -d ' ')" "$keeper"
  open=$(readlink "/proc/$keeper/fd/"*)
  [[ ${open/"$T/shell.err"/} != *"$T"* ]] || fail "$open" # see the next test
  same "$(readlink -f "/proc/$keeper/fd/"{0,1,2} | sort -u)" /dev/null
  same "$(readlink "/proc/$keeper/cwd")" /
}

@test "a loss is told in a file that the script goes on writing to, without O_APPEND" {
  cat >"$T/script.sh" <<'END'
echo begin
trap 'echo caught TERM; exit' TERM
rlock acquire job --ttl 10 --hold-pid $$ >/dev/null || exit
while :; do sleep 0.05; done
END
  start script sh -c 'exec sh "$0" >"$1" 2>&1' "$T/script.sh" "$T/log"
  wait_held job
  try release --force job
  finish "$PID"
  matches "$(<"$T/log")" "^begin
rlock: job: evicted by .*; the script gets SIGTERM
caught TERM\$"
}

@test "a loss does not overwrite what another script has written to its log" {
  start script sh -c 'echo begin; (rlock acquire job --ttl 1 --hold-pid $$ 2>/dev/null) >"$0"; exec sleep 600' "$T/token"
  wait_until "$PATIENCE" test -s "$T/token"
  echo 'the script and its children write here' >>"$T/script.err"
  try release --force job
  finish "$PID"
  same "$(head -n 1 "$T/script.err")" 'the script and its children write here'
  contains "$(<"$T/script.err")" 'the script gets SIGTERM'
}

@test "HUP, INT, QUIT and TERM to the background process are passed on as the signal, and it goes on renewing" {
  local signal keeper
  for signal in HUP INT QUIT TERM; do
    start script bash -c 'trap "echo told" TERM; rlock acquire job --ttl 1 --hold-pid $$ >/dev/null || exit
      echo >"$0"; while :; do sleep 0.05; done' "$T/held"
    wait_until "$PATIENCE" test -s "$T/held"
    rm "$T/held"
    keeper=$(keeper_of job)
    kill "-$signal" "$keeper"
    wait_for_text told "$T/script.out"
    END=$(ends_at job)
    wait_until 5 renewed job
    kill -KILL "$PID"
    wait_until 5 absent rlock:job
  done
}

@test "a background process that is killed: the script is told, and gets the signal" {
  beside job --ttl 5
  kill -KILL "$(keeper_of job)"
  finish "$SHELL_PID"
  exits 143
  same "$(<"$T/shell.err")" 'rlock: job: the process that renewed the lock was killed; the script gets SIGTERM'
  wait_until 2 no_keeper
}

@test "a background process that is killed before it has renewed: the script gets the signal" {
  can_trace
  start script bash -c 'strace -D -f -o /dev/null -e trace=connect -e inject=connect:delay_enter=3000000 \
    rlock acquire job --ttl 20 --redis-timeout 10 --hold-pid $$ >/dev/null || exit
    echo >"$0"; while :; do sleep 0.05; done' "$T/held" # until it has ended, acquire gives the lock back instead
  wait_until "$PATIENCE" test -s "$T/held"
  kill -KILL "$(keeper_of job)"
  finish "$PID"
  exits 143
  wait_until "$PATIENCE" no_keeper
}

@test "KILL for the background process's group, or all of its name: the script is told all the same" {
  local keeper
  beside job --ttl 20
  keeper=$(keeper_of job)
  same "$(ps -o comm= --sid "$keeper" | sort)" $'lock-watch\nrlock'
  kill -KILL -- "-$keeper"
  finish "$SHELL_PID"
  exits 143
  wait_until 2 no_keeper
}

@test "a background process that is stopped until the script has got the signal, and is continued: no second signal" {
  local keeper
  start script bash -c 'trap "echo told" TERM; rlock acquire job --ttl 2 --hold-pid $$ >/dev/null || exit
    echo >"$0"; while :; do sleep 0.05; done' "$T/held"
  wait_until "$PATIENCE" test -s "$T/held"
  keeper=$(keeper_of job)
  freeze "$keeper"
  wait_for_text told "$T/script.out"
  kill -CONT "$keeper"
  wait_until "$PATIENCE" no_keeper
  kill -KILL "$PID"
  same "$(<"$T/script.out")" told
}

@test "a background process that is stopped: the script gets the signal before the lease ends" {
  local keeper
  beside job --ttl 3
  keeper=$(keeper_of job)
  freeze "$keeper"
  finish "$SHELL_PID"
  exits 143
  exists rlock:job
  contains "$(<"$T/shell.err")" 'the process that renews the lock is stopped or hangs; the script gets SIGTERM'
  kill -CONT "$keeper"
  wait_until 5 absent rlock:job
}

@test "release --force of a script that does not end when it is told: nobody says that it has gone" {
  local script
  start script bash -c 'trap "" TERM; rlock acquire job --ttl 2 --hold-pid $$ >"$0" && exec sleep 600' "$T/token"
  wait_until "$PATIENCE" test -s "$T/token"
  try release --force job
  exits 0
  matches "$OUT" '^job: evicted .*; it did not give the lock up, and its lease ended after [0-9.]+s: its script was at most told to end, and may run on$'
  script=$PID
  beside other --ttl 20
  try release --force other
  matches "$OUT" '^other: evicted .*, gone after [0-9.]+s$'
  kill -KILL "$script"
}

@test "a release with the token ends the background process silently" {
  local keeper
  beside job --ttl 1
  keeper=$(keeper_of job)
  try release job --token "$(<"$T/token")"
  exits 0
  wait_until 5 gone "$keeper"
  ! gone "$SHELL_PID" || fail "the script was signalled"
}

@test "a loss is reported on the script's own standard error, wherever the output of acquire went" {
  local said
  beside job --ttl 3 # it reads the output of acquire by $(...)
  try release --force job
  exits 0
  finish "$SHELL_PID"
  exits 143
  said="rlock: job: evicted by $(id -un)@$(uname -n) pid [0-9]+; the script gets SIGTERM"
  matches "$(<"$T/shell.err")" "^$said\$"
  start script sh -c 'rlock acquire job --ttl 3 --hold-pid $$ >"$0" 2>/dev/null && exec sleep 600' "$T/second_token"
  wait_until "$PATIENCE" test -s "$T/second_token"
  cli DEL rlock:job
  finish "$PID"
  exits 143
  same "$(<"$T/script.err")" 'rlock: job: lost: it was released by force, deleted or taken over, or Redis has lost its data; the script gets SIGTERM'
  wait_until "$PATIENCE" is_said_to_be_lost
}

is_said_to_be_lost() { [[ $(rlock log job --json | jq -r '.[-1].end') == lost ]]; }

@test "a lease that is lost: the process gets TERM" {
  beside job --ttl 1
  try release --force job
  exits 0
  finish "$SHELL_PID"
  exits 143
  same "$(cli EXISTS rlock:job)" 0
}

@test "a lease that is lost: --signal chooses another" {
  beside job --ttl 1 --signal USR1
  cli DEL rlock:job
  finish "$SHELL_PID"
  exits 138
}

@test "Redis silent: the process is signalled in time to end before the lease does" {
  local left begin took
  for _ in {1..6}; do
    beside job --ttl 6
    begin=$(now_ms)
    # At once: what is left of the lease is not renewed any more.
    left=$(printf '%s\n' MULTI 'PTTL rlock:job' 'CLIENT PAUSE 60000' EXEC | cli --raw | sed -n 4p)
    finish "$SHELL_PID"
    exits 143
    took=$(($(now_ms) - begin))
    # TERM is due 1.8 s before the end. On a busy machine it is enough to see that in one of six attempts.
    ((took >= left - 350)) || return 0
    start_redis
  done
  fail "after $took ms at best, with $left ms left"
}

@test "a signal to the background process ends the job, and the lock is released" {
  beside job
  kill -TERM "$(keeper_of job)"
  finish "$SHELL_PID"
  exits 143
  wait_until 5 absent rlock:job
}

@test "a process that does not exist is a usage error, before the lock is taken" {
  local dead
  sh -c 'echo $$' >"$T/dead"
  dead=$(<"$T/dead")
  refuses 64 "no process $dead" acquire job --hold-pid "$dead"
  refuses 64 'in a Makefile write $$ for each $' acquire job --hold-pid '$'
  refuses 64 --hold-pid acquire job --hold-pid 0
  refuses 64 --hold-pid acquire job --hold-pid -1
  refuses 64 --hold-pid acquire job --hold-pid self
}

@test "a thread's number is no process's" {
  start threads python3 -c 'import threading, time
threading.Thread(target=lambda: (print(threading.get_native_id(), flush=True), time.sleep(600))).start()'
  wait_until "$PATIENCE" test -s "$T/threads.out"
  refuses 64 'no process' acquire job --hold-pid "$(<"$T/threads.out")"
}

@test "a zombie is not accepted as the process" {
  start zombie python3 -c 'import os, time
pid = os.fork()
if pid == 0: os._exit(0)
print(pid, flush=True)
time.sleep(600)'
  wait_until "$PATIENCE" test -s "$T/zombie.out"
  wait_until "$PATIENCE" gone "$(<"$T/zombie.out")"
  refuses 64 'no process' acquire job --hold-pid "$(<"$T/zombie.out")"
}

@test "another user's process is a usage error" {
  if ((EUID)); then
    refuses 64 "another user's" acquire job --hold-pid 1
    return
  fi
  start other setpriv --reuid=65534 --clear-groups sleep 600
  wait_until "$PATIENCE" grep -qs '^Uid:.65534' "/proc/$PID/status"
  refuses 64 "another user's" acquire job --hold-pid "$PID"
}

@test "a token that cannot be printed: the lock is free, no process is left behind, non-zero" {
  try acquire other # the server learns the scripts
  STATUS=0
  start script sleep 600
  rlock acquire job --hold-pid "$PID" >/dev/full 2>"$T/err" 3>&- || STATUS=$?
  exits 71
  wait_until 5 absent rlock:job
  wait_until 5 no_keeper
}

# The lock is held, so that what is not refused fails otherwise, and nobody is signalled.
@test "process 1 is refused, and rlock itself" {
  hold job
  STATUS=0
  setsid -w rlock acquire job -n --hold-pid 1 2>"$T/err" || STATUS=$?
  exits 64
  same "$(<"$T/err")" "rlock: --hold-pid: process 1 is not a script that called rlock; write \$\$ for a shell's own PID"
  STATUS=0
  sh -c 'exec rlock acquire job -n --hold-pid $$' 2>"$T/err" || STATUS=$?
  exits 64
  matches "$(<"$T/err")" '^rlock: --hold-pid: process [0-9]+ is rlock itself$'
}

@test "the subshell of a command substitution is refused, and one around it, or one in a pipeline, may hold a lock" {
  STATUS=0
  cat >"$T/script" <<'END_OF_SCRIPT'
( eval "$(rlock acquire "$1" --hold-pid $BASHPID --output shell || echo exit $?)"; echo unlocked )
END_OF_SCRIPT
  bash "$T/script" job >"$T/out" 2>"$T/err" || STATUS=$?
  exits 64
  same "$(<"$T/out")" ''
  matches "$(<"$T/err")" '^rlock: --hold-pid: process [0-9]+ is the subshell of \$\(\.\.\.\), which ends at once; set p=\$BASHPID before it, and write --hold-pid \$p$'
  cat >"$T/script" <<'END_OF_SCRIPT'
( p=$BASHPID; eval "$(rlock acquire job --hold-pid $p --output shell || echo exit $?)"; rlock status job )
until rlock run job -n -- true 2>/dev/null; do sleep .02; done
( rlock acquire job --hold-pid $BASHPID; rlock status job ) | cat
END_OF_SCRIPT
  bash "$T/script" >"$T/out"
  same "$(grep -c '^job  *x ' "$T/out")" 2
  until rlock run job -n -- true; do sleep .02; done
  bash "$T/script" | cat >"$T/out" # the script's output is a pipe, which it does not read
  same "$(grep -c '^job  *x ' "$T/out")" 2
}

@test "a script that is process 1, as in a container, may hold a lock" {
  unshare --pid --fork --mount-proc true 2>/dev/null || skip "no namespaces here"
  unshare --pid --fork --mount-proc sh -c 'token=$(rlock acquire job --hold-pid $$) && echo "$$" &&
    rlock release job --token "$token"' >"$T/out"
  same "$(<"$T/out")" 1
}

@test "not acquired: no process is left behind" {
  hold job
  try acquire job -n --hold-pid $$
  exits 75
  same "$OUT" ''
  wait_until 5 no_keeper
}

@test "a script that dies while it waits leaves the queue" {
  hold job
  start shell sh -c 'rlock acquire job --hold-pid $$'
  wait_until "$PATIENCE" exists '{rlock:job}:queue'
  kill -KILL "$PID"
  wait_until 5 absent '{rlock:job}:queue'
}

@test "the other outputs work with --hold-pid" {
  start shell sh -c 'eval "$(rlock acquire job --hold-pid $$ --output shell)" && rlock renew && exec sleep 600'
  wait_held job
  kill -KILL "$PID"
  wait_until 5 absent rlock:job
}

@test "a background process that is killed while it waits: 70, and the lock is given back" {
  hold job
  start script sleep 600 # not this shell, which would be told to end if the lease were lost
  start acquire rlock acquire job --hold-pid "$PID"
  wait_until "$PATIENCE" exists '{rlock:job}:waiters'
  kill -KILL "$(pgrep --parent "$PID")"
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  finish "$PID"
  exits 70
  absent rlock:job
}

@test "a background process that is stopped does not answer: 70, and the lock is given back" {
  local background
  hold job
  start script sleep 600 # not this shell, which would be told to end if the lease were lost
  start acquire rlock acquire job --hold-pid "$PID"
  wait_until "$PATIENCE" exists '{rlock:job}:waiters'
  background=$(pgrep --parent "$PID")
  freeze "$background" # as one that was killed, and whose turn to run has not come, it can be sent something
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  finish "$PID"
  exits 70
  absent rlock:job
  kill -CONT "$background"
}

@test "a background process that answers after the lease is not trusted: 70" {
  local background
  hold job
  start script sleep 600
  start acquire rlock acquire job --ttl 500ms --hold-pid "$PID"
  wait_until "$PATIENCE" exists '{rlock:job}:waiters'
  background=$(pgrep --parent "$PID")
  freeze "$background"
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  wait_until "$PATIENCE" test -s "$T/acquire.out"
  sleep 0.8
  kill -CONT "$background"
  finish "$PID"
  exits 70
  contains "$(<"$T/acquire.err")" 'did not answer'
}

@test "whoever has the number of a process that has ended is not signalled in its place" {
  unshare --pid --fork --mount-proc sh -c 'echo 100 >/proc/sys/kernel/ns_last_pid' 2>/dev/null ||
    skip "this machine lets nobody choose numbers of processes"
  start space unshare --pid --fork --mount-proc bash -c '
    sleep 600 & first=$!
    rlock acquire job --hold-pid "$first" >/dev/null
    keeper=$(pgrep -o -x rlock)
    kill -STOP "$keeper"
    kill "$first"; wait "$first"
    echo $((first - 1)) >/proc/sys/kernel/ns_last_pid
    sleep 601 & second=$!
    [ "$second" = "$first" ] || echo "another number"
    kill -TERM "$keeper"; kill -CONT "$keeper"
    while kill -0 "$keeper"; do sleep 0.02; done
    kill "$second" && echo alive'
  finish "$PID"
  same "$(<"$T/space.out")" alive
  absent rlock:job
}

@test "a script that waits for its own lock is told so, one that waits for another's is not" {
  local place='has started this command: if each waits for the other, neither ends; '
  cat >"$T/script.sh" <<'END'
rlock acquire job --hold-pid $$ >/dev/null || exit
echo $$
rlock run job -w 300ms -- true
sh -c 'rlock acquire job -w 300ms; true'
END
  STATUS=0
  sh "$T/script.sh" >"$T/out" 2>"$T/err" || STATUS=$?
  exits 0
  same "$(grep -cF "rlock: job: process $(<"$T/out"), which has it by --hold-pid, $place"'write eval' "$T/err")" 2
  beside job
  try run job -w 300ms -- true
  exits 75
  [[ $ERR != *'has started'* ]] || fail "$ERR"
}

@test "a run that waits for the run around it, which it does not know, is told so" {
  try run job -- sh -c 'unset RLOCK_HELD; rlock run job -w 300ms -- true; rlock run job -n -- true'
  exits 75
  same "$(grep -cE 'rlock: job: process [0-9]+, which holds it, has started this command: .* keeps RLOCK_HELD, ' "$T/err")" 1
}
