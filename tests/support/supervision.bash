# What the tests of supervision need besides helpers.bash: a witness that records how long processes live, a network
# that fails on demand, other users.

HERE=$(dirname "${BASH_SOURCE[0]}")
ALL=(stubborn child setsid double) # a witness with every kind of descendant, all of which ignore TERM

# The server records each end that it gives a lease; `in_time` reads that.
start_redis_with_a_log() { start_redis --appendonly yes --appendfsync no; }

# run_witness [RUN-OPTION...] -- [WITNESS...]: starts a run of key job whose command is a witness; see witness.py. Sets
# PID. On a busy machine its lease, or its time, may be over before all of the witness lives: then it is started again.
run_witness() {
  local options=()
  while [[ $1 != -- ]]; do
    options+=("$1")
    shift
  done
  shift
  for _ in {1..10}; do
    rm -f "$T/stamps"
    start job "${AS_USER[@]}" rlock run --key job "${options[@]}" -- python3 "$HERE/witness.py" stamp "$T/stamps" "$@"
    wait_until "$PATIENCE" says_ready_or_gone "$PID"
    ! grep -q ready "$T/job.out" || return 0
  done
  fail "$(<"$T/job.err")"
}

says_ready_or_gone() { grep -q ready "$T/job.out" || gone "$1"; } # PID

# lost: waits for the end of `job`, which must have stopped its command because the lease could not be kept; sets ERR
lost() {
  finish "$PID"
  ERR=$(<"$T/job.err")
  exits 76
  matches "$ERR" 'rlock: (lost job|job was evicted)'
}

# in_time [MOST]: the witness and all its descendants fell silent before the lease ended on the server, by at most MOST
# ms
in_time() {
  local margin
  margin=$(python3 "$HERE/witness.py" margin "$T/stamps" "${REDIS_SOCK%/*}" rlock:job)
  ((margin > 0 && margin < ${1:-1000000})) || fail "the last stamp was made $margin ms before the lease's end"
}

# silent_since MS: no stamp was made later than that (CLOCK_BOOTTIME), and none is being made now
silent_since() {
  local last
  last=$(python3 "$HERE/witness.py" last "$T/stamps")
  ((last <= $1)) || fail "a stamp was made $((last - $1)) ms too late"
}

# dies_at_once KILL...: the witness of `run_witness` and all its descendants fall silent within 100 ms after KILL, in one
# of three attempts, since the machine itself may be late
dies_at_once() {
  local killed last
  for _ in {1..3}; do
    run_witness -- "${ALL[@]}"
    "$@"
    killed=$(now_ms)
    wait_until 5 no_witnesses
    last=$(python3 "$HERE/witness.py" last "$T/stamps")
    ((last > killed + 100)) || return 0
    cli DEL rlock:job
  done
  fail "the last stamp was made $((last - killed)) ms after the kill"
}

guard_of() { # KEEPER
  local child
  read -r child _ <"/proc/$1/task/$1/children"
  echo "$child"
}

# family_of PID: its descendants that are not zombies.
family_of() {
  local child
  # shellcheck disable=SC2013 # words, on one line
  for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
    gone "$child" || echo "$child"
    family_of "$child"
  done
}

state_is() { grep -q "^State:.$2" "/proc/$1/status"; } # PID LETTER

freeze() { # PID
  kill -STOP "$1"
  wait_until "$PATIENCE" state_is "$1" T
}

# start_proxy: from here on rlock reaches its server through proxy.py, which `network` controls
start_proxy() {
  local port
  mkfifo "$T/network"
  exec 9<>"$T/network"
  start proxy python3 "$HERE/proxy.py" "$REDIS_PORT" "$T/network"
  wait_until "$PATIENCE" has_lines "$T/proxy.out" 1
  read -r port <"$T/proxy.out"
  export RLOCK_REDIS=redis://127.0.0.1:$port
}

network() { # WORD...: see proxy.py
  local count
  count=$(wc -l <"$T/proxy.out")
  echo "$*" >&9
  wait_until "$PATIENCE" has_lines "$T/proxy.out" $((count + 1))
}

# ordinary_user: sets AS_USER, a prefix that runs a command as an ordinary user without other processes if root runs the
# tests, and is empty otherwise
ordinary_user() {
  local id=$((100000 + RANDOM * 30 + RANDOM % 30))
  ((EUID == 0)) || return 0
  AS_USER=(setpriv --reuid "$id" --regid "$id" --clear-groups -- env "PATH=$T/bin:/usr/bin:/bin")
  # The binary and our files may be where only root has access.
  cp --remove-destination "$(realpath "$T/bin/rlock")" "$T/bin/rlock"
  cp "$HERE"/*.py "$T"
  HERE=$T
  chown -R "$id" "$T"
  chmod o+x "${BATS_RUN_TMPDIR:-$T}"
  "${AS_USER[@]}" test -x "$T/bin/rlock" || skip "the tests' directory is root's alone"
}

# The pids of the live processes of `run_witness`, the command first.
witnesses() {
  local pid
  for pid in $(leftovers); do
    [[ $(<"/proc/$pid/comm") != python3 ]] || echo "$pid"
  done 2>/dev/null | sort -n
}

no_witnesses() { [[ -z $(witnesses) ]]; }

# ---- terminals

# An interactive shell for `user`.
SHELL_THERE=(env 'PS1=prompt> ' bash --norc --noprofile -i)

# user COMMAND... @ STEP...: runs the command on a terminal, whose user takes the steps; sets STATUS and SHOWN, the
# output
user() {
  local command=()
  while [[ $1 != @ ]]; do
    command+=("$1")
    shift
  done
  shift
  STATUS=0
  SHOWN=$(printf '%s\n' "$@" | python3 "$HERE/terminal.py" "${command[@]}" 2>"$T/steps" 3>&- 4>&-) || STATUS=$?
  [[ ! -s $T/steps ]] || fail "$(<"$T/steps")" "${SHOWN:0:2000}"
}
