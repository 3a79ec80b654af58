# rlock run: environments in which it cannot start its command, and odd ones in which it can. Whatever can be known
# before the lock is taken is reported before Redis is contacted.

load ../support/helpers
load ../support/supervision

untouched() { # Redis was never asked to take a lock
  same "$(cli DBSIZE)" 0
  [[ $(cli INFO commandstats) != *cmdstat_eval* ]]
}

@test "a command that is missing, a directory or not executable: 127, 126, 126, and Redis is not asked" {
  touch "$T/plain"
  mkdir "$T/folder"
  refuses 127 no-such-command run --key job -- no-such-command
  refuses 127 missing run --key job -- "$T/missing"
  refuses 127 missing run --key job -- "$T/plain/missing"
  refuses 127 empty run --key job -- ''
  refuses 126 plain run --key job -- "$T/plain"
  refuses 126 folder run --key job -- "$T/folder"
  PATH=$T:$PATH refuses 126 plain run --key job -- plain
  untouched
}

@test "a command that fails only at exec: 126 or 127, and the lock is free at once" {
  printf '#!/no/such/interpreter\n' >"$T/script"
  chmod +x "$T/script"
  try run --key job -- "$T/script"
  exits 127
  same "$ERR" "rlock: cannot run $T/script: its interpreter '/no/such/interpreter' is missing"
  absent rlock:job
  printf '#!/bin/sh\r\n' >"$T/script"
  try run --key job -- "$T/script"
  exits 127
  same "$ERR" "rlock: cannot run $T/script: its interpreter '/bin/sh\\r' is missing"
  printf '#!/etc/passwd\n' >"$T/script"
  try run --key job -- "$T/script"
  exits 126
  absent rlock:job
  try run --key job -- true "$(head -c 200000 /dev/zero | tr '\0' a)"
  exits 126
  absent rlock:job
}

@test "a script without #! is run by sh, as execvp does" {
  echo 'echo ran by $0' >"$T/script"
  chmod +x "$T/script"
  try run --key job -- "$T/script"
  exits 0
  same "$OUT" "ran by $T/script"
}

@test "16 descriptors suffice, and with few no lock is left behind" {
  local limit
  ulimit -Sn 16
  try run --key job -- sh -c 'ulimit -n'
  exits 0
  same "$OUT" 16
  for limit in 3 4 5 8 9 10; do
    STATUS=0
    sh -c 'ulimit -n "$0"; exec rlock run --key job -- true' "$limit" 2>"$T/err" 3>&- 4>&- || STATUS=$?
    ((STATUS == 0 || STATUS == 71 || STATUS == 127)) || fail "status $STATUS with $limit descriptors: $(<"$T/err")"
    absent rlock:job
  done
}

@test "too few descriptors for the guard: the message says so" {
  local limit
  is_sanitized && skip "a sanitizer has descriptors of its own"
  for limit in 6 7 8; do
    STATUS=0
    sh -c 'ulimit -n "$0"; exec rlock run --key job -- true' "$limit" 2>"$T/err" 3>&- 4>&- || STATUS=$?
    exits 71
    contains "$(<"$T/err")" ': Too many open files'
  done
}

@test "the guard fails while the lock is being acquired: no lock and no process is left behind" {
  local _
  for _ in {1..10}; do
    sh -c 'ulimit -n 6; exec rlock run --key job -n -- true' 2>"$T/err" 3>&- 4>&- || true
    absent rlock:job || fail "$(<"$T/err")"
  done
}

@test "no more processes allowed: 71, and the lock is not taken or released at once" {
  ((EUID == 0)) || skip "needs a user without other processes"
  local limit status seen=
  export ASAN_OPTIONS=detect_leaks=0 # the leak checker would need one more process
  ordinary_user
  for limit in 1 2 3 4; do
    status=0
    "${AS_USER[@]}" prlimit --nproc="$limit" rlock run --key job -- true 2>"$T/err" 3>&- 4>&- || status=$?
    ((status == 0)) || contains "$(<"$T/err")" 'rlock: cannot'
    absent rlock:job
    seen+="$status "
  done
  same "$seen" '71 71 0 0 '
}

@test "a user in 3,000 groups can run a command" {
  ((EUID == 0)) || skip "only root can join groups"
  STATUS=0
  OUT=$(python3 -c 'import os, sys
os.setgroups(range(4_000_000_000, 4_000_003_000))
os.execvp(sys.argv[1], sys.argv[1:])' rlock run --key job -- sh -c 'id -G | wc -w' 2>&1 3>&- 4>&-) || STATUS=$?
  same "$OUT" 3001
  exits 0
}

@test "rlock works in a directory that is read-only or deleted" {
  mkdir "$T/gone" "$T/fixed"
  chmod a-w "$T/fixed"
  cd "$T/gone"
  rmdir "$T/gone"
  try run --key job -- true
  exits 0
  ordinary_user
  cd "$T/fixed"
  STATUS=0
  OUT=$("${AS_USER[@]}" rlock run --key job -- pwd 3>&- 4>&-) || STATUS=$?
  exits 0
  same "$OUT" "$T/fixed"
}

@test "rlock works in an empty environment, and adds only its own variables" {
  STATUS=0
  OUT=$(env -i "$T/bin/rlock" --redis "$RLOCK_REDIS" run --key job -- sh -c 'echo $RLOCK_KEY' 3>&- 4>&-) || STATUS=$?
  exits 0
  same "$OUT" job
  env -i "$T/bin/rlock" --redis "$RLOCK_REDIS" run --key job -- env | grep -v ^RLOCK_ >"$T/more" || true
  same "$(<"$T/more")" ''
}

@test "the bare environment of cron: nothing is printed, and nothing is left behind" {
  OUT=$(env -i HOME=/ LOGNAME=x SHELL=/bin/sh PATH=/usr/bin:/bin setsid \
    "$T/bin/rlock" --redis "$RLOCK_REDIS" run --key job -n -E 0 -q -- true 2>&1 </dev/null 3>&- 4>&-)
  same "$OUT" ''
  absent rlock:job
}

@test "rlock as process 1 of a container: orphans are reaped, and it exits by status" {
  ((EUID == 0)) || skip "needs root to make a container"
  unshare --pid --fork --mount-proc true 2>/dev/null || skip "no namespaces here"
  STATUS=0
  unshare --pid --fork --mount-proc --kill-child rlock run --key job -- \
    sh -c '(sleep 0.1 & exec true) & sleep 0.3; kill -INT $$' 3>&- 4>&- || STATUS=$?
  exits 130
  absent rlock:job
}

# The keeper adopts such orphans because it must adopt the command's, should the guard be killed.
@test "orphans of what a script had in the background when it became rlock are reaped, while rlock waits too" {
  cat >"$T/script" <<'END_OF_SCRIPT'
until [ -e "$1" ]; do sleep .02; done && sh -c 'sleep 0.1 & echo $! >"$0"' "$2" &
exec rlock run --key job -- sleep 601
END_OF_SCRIPT
  start job bash "$T/script" "$T/held" "$T/orphan"
  wait_held job
  start waiter bash "$T/script" "$T/waiting" "$T/waiters-orphan"
  wait_for_text waiting "$T/waiter.err"
  touch "$T/held" "$T/waiting"
  wait_until "$PATIENCE" vanished "$T/orphan"
  wait_until "$PATIENCE" vanished "$T/waiters-orphan"
}

vanished() { [[ -s $1 && ! -e /proc/$(<"$1") ]]; } # FILE with a PID: not even a zombie is left
