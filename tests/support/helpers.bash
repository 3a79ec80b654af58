# Private Redis servers, rlock in the foreground and background, waiting for events, assertions, and a teardown that
# fails if a test leaves a process behind. Every .bats file loads it; quickstart.sh borrows from it.
#
# A test finds: T, its own directory; RLOCK_REDIS, its own server, and no other variable that rlock reads.

# shellcheck disable=SC2119,SC2120 # some tests pass options
PATIENCE=${PATIENCE:-20} # seconds that a single step may take: only a bug takes as long, a busy machine does not

REDIS_SERVER=${REDIS_SERVER:-redis-server}
REDIS_CLI=${REDIS_SERVER%-server}-cli
SERVERS=() RUNNING=() # pids
TLS_ONLY=()

setup() {
  hermetic
  start_redis
}

# Nothing of the caller may reach rlock: no configuration, no credentials, no terminal.
hermetic() {
  local rlock
  # One that fails is tried once more, and said to be so: six tests at a time make any machine a busy one.
  BATS_TEST_RETRIES=1
  ((${BATS_TEST_TRY_NUMBER:-1} == 1)) || echo "# tried again: $BATS_TEST_DESCRIPTION" >&3
  rlock=$(realpath "${RLOCK:-${BASH_SOURCE[0]%/*}/../../build/rlock}")
  [[ -x $rlock ]] || fail "there is no $rlock: run tests/run.sh, which builds it"
  T=${BATS_TEST_TMPDIR:-$(mktemp -d)}
  mkdir "$T/bin"
  mkfifo "$T/nothing" # to wait without a process: nobody ever writes to it
  ln -s "$rlock" "$T/bin/rlock"
  unset "${!RLOCK_@}" REDIS_URL REDISCLI_AUTH XDG_CONFIG_HOME NO_COLOR
  export PATH=$T/bin:$PATH HOME=$T LC_ALL=C
  export TEST_MARK=$T # in the environment of all that the test starts, see `leftovers`
  exec </dev/null
  # bats notes the line of every command, which takes most of a test's time. The lines of the test itself are enough.
  if declare -F "${BATS_TEST_NAME-}" >/dev/null; then
    set +o functrace
    declare -ft "$BATS_TEST_NAME"
  fi
}

# A missing command fails the test, even where `! command` or `command || true` would hide it.
command_not_found_handle() {
  echo "$1: command not found; which package of tests/install-deps.sh brings it?" | tee -a "$T/not-found" >&2
  return 127
}

# optional COMMAND PACKAGE: skips the test without a command that install-deps.sh does not install
optional() { command -v "$1" >/dev/null || skip "optional package $2 is not installed"; }

teardown() { clean_up; }

clean_up() {
  local left='' pid
  stop "${RUNNING[@]}"
  wait_until 2 no_rlock_left || true # while there is a server: a background process releases its lock
  stop "${SERVERS[@]}"
  [[ ! -e $T/not-found ]] || { cat "$T/not-found" >&2 && return 1; }
  for pid in "${SERVERS[@]}"; do gone "$pid" || left+=" $pid"; done
  [[ ! $left ]] && wait_until 5 no_leftovers && return 0 # a bare return, in a trap, is the status of what failed before
  left+=" $(leftovers)"
  for pid in $left; do echo "left behind: $pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"; done >&2
  # shellcheck disable=SC2086 # one word each
  kill -KILL $left
  return 1
}

# ---- processes

# The pids of this test's processes, wherever they are: their environment carries its mark. (Not those of redis-server,
# which overwrites its environment with its title.)
leftovers() {
  local file
  for file in $(env -u TEST_MARK grep -lszFx "TEST_MARK=$T" /proc/[0-9]*/environ); do
    echo "${file//[!0-9]/}"
  done
}

no_leftovers() { [[ -z $(leftovers) ]]; }

no_rlock_left() {
  local pid
  for pid in $(leftovers); do [[ $(readlink "/proc/$pid/exe") != "$(realpath "$T/bin/rlock")" ]] || return 1; done
}

gone() { # PID: there is none, or only a zombie
  local stat
  content "/proc/$1/stat" stat
  [[ -z $stat || ${stat##*) } == [ZX]* ]]
}

# stop PID...: terminates them, frozen ones too, and waits for their end
stop() {
  local pid
  # In this order: CONT takes back the STOP by which a leak checker attaches to what is ending, and which it waits for.
  for pid; do { kill -CONT "$pid" && kill -TERM "$pid"; } || true; done 2>/dev/null
  for pid; do wait_until 5 gone "$pid" || true; done
}

# start NAME COMMAND...: in the background; PID is its pid, its output goes to $T/NAME.out and $T/NAME.err
start() {
  local name=$1
  shift
  : >"$T/$name.out" # what an earlier process of that name said must not be taken for this one's words
  # The background commands of a non-interactive shell ignore INT and QUIT; a user's do not.
  env --default-signal=INT,QUIT "$@" >"$T/$name.out" 2>"$T/$name.err" 3>&- 4>&- &
  PID=$!
  RUNNING+=("$PID")
}

# finish PID: waits for the end of a process that `start` started; sets STATUS
finish() {
  wait_until "$PATIENCE" gone "$1"
  STATUS=0
  wait "$1" || STATUS=$?
}

# try ARG...: rlock in the foreground; sets STATUS, OUT, ERR and how many ms it TOOK
try() {
  local begin
  look_at_clock
  begin=$NOW
  STATUS=0
  timeout --foreground -k 2 "$PATIENCE" rlock "$@" >"$T/out" 2>"$T/err" 3>&- 4>&- || STATUS=$?
  look_at_clock
  TOOK=$((NOW - begin))
  OUT=$(<"$T/out")
  ERR=$(<"$T/err")
}

# quick MS STATUS ARG...: as `try`, and at least one of ten attempts takes less than MS; a busy machine may delay others
quick() {
  local most=$1 want=$2
  shift 2
  for _ in {1..10}; do
    try "$@"
    exits "$want"
    ((TOOK >= most)) || return 0
  done
  is_sanitized || fail "it never took less than $most ms, in the end $TOOK ms: rlock ${*@Q}"
}

# processor_ms COMMAND...: for how many ms it keeps a processor busy, which is to be compared with another command's
processor_ms() {
  local TIMEFORMAT='%3U %3S' user system
  read -r user system < <({ time "$@" >/dev/null 2>&1; } 2>&1)
  echo $((10#${user/./} + 10#${system/./}))
}

# ---- waiting: most of what a test does, so it is done without starting processes

# look_at_clock: sets NOW to the milliseconds of CLOCK_BOOTTIME, to 10 ms
look_at_clock() {
  local up rest
  read -r up rest </proc/uptime
  NOW=$((10#${up/./} * 10))
}

now_ms() {
  look_at_clock
  echo "$NOW"
}

# content FILE VARIABLE: sets it to what the file holds; nothing if there is none
content() {
  printf -v "$2" ''
  { IFS= read -rd '' "$2" <"$1"; } 2>/dev/null || true # there is no NUL to end at
}

# wait_until SECONDS COMMAND...: until it succeeds
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    if ((SECONDS > deadline)); then
      fail "waited in vain for: $*"
      return 1
    fi
    read -rt 0.02 <>"$T/nothing" || true
  done
}

exists() { [[ $(cli EXISTS "$1") == 1 ]]; }
absent() { [[ $(cli EXISTS "$1") == 0 ]]; }
wait_held() { wait_until "$PATIENCE" exists "rlock:$1"; }
waiting() { [[ $(cli ZCARD "{rlock:${2-job}}:queue") == "$1" ]]; } # COUNT [KEY]: so many wait
is_queued() { cli HVALS '{rlock:job}:waiters' | grep -q " $1 "; }   # PID

can_trace() {
  strace -o /dev/null true || skip "strace may not trace here"
  export ASAN_OPTIONS=detect_leaks=0 # a sanitizer's leak checker is a tracer itself
}

refuses_to_write() { [[ $(cli SET a b) == MISCONF* ]]; }
script_calls() { cli INFO commandstats | awk -F'[=,]' '/^cmdstat_eval(sha)?:/ {sum += $2} END {print sum + 0}'; }
wait_for_text() { wait_until "$PATIENCE" has_text "$2" "$1"; } # TEXT FILE

has_text() { # FILE TEXT
  local content
  content "$1" content
  [[ $content == *"$2"* ]]
}

has_lines() { # FILE COUNT: it has at least COUNT whole lines
  local content
  content "$1" content
  content=${content//[!$'\n']/}
  ((${#content} >= $2))
}

write_script() { # NAME TEXT: an executable $T/NAME
  printf '#!/bin/sh\n%s\n' "$2" >"$T/$1"
  chmod +x "$T/$1"
}

# hold KEY [OPTION...]: starts a run that holds KEY until the test ends it; HOLDER is its pid
hold() {
  local key=$1
  shift
  start holder rlock run --key "$key" "$@" -- sleep 600
  HOLDER=$PID
  wait_until "$PATIENCE" exists_or_gone "rlock:$key" "$HOLDER"
  exists "rlock:$key" || fail "rlock run ended: $(<"$T/holder.err")"
}

# waiter_has_its_turn: ends the run that `hold` started; the waiting one, PID, then succeeds
waiter_has_its_turn() {
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  exits 143
  finish "$PID"
  exits 0
}

exists_or_gone() { exists "$1" || gone "$2"; } # KEY PID

# sell STOCK [PREFIX...]: 16 buyers each read the stock, think, and decrement it, as a command behind PREFIX if given
sell() {
  local redis="$REDIS_CLI -s $REDIS_SOCK" buyer buyers=()
  local buy="[ \$($redis GET stock) -gt 0 ] && sleep ${THINK:-0.01} && $redis DECR stock"
  cli SET stock "$1" >/dev/null
  shift
  for buyer in {1..16}; do
    start "buyer$buyer" bash -c 'while "$@" sh -c "$0"; do :; done' "$buy" "$@"
    buyers+=("$PID")
  done
  for buyer in "${buyers[@]}"; do finish "$buyer"; done
}

# ---- Redis

# start_redis [OPTION...]: sets REDIS_PORT, REDIS_SOCK and REDIS_PID, exports RLOCK_REDIS
start_redis() {
  local dir
  dir=$(mktemp -d "$T/redis.XXXXXX")
  REDIS_SOCK=$dir/sock
  until try_port $((20000 + RANDOM % 12000)) "$@"; do # below the ports that the kernel gives to clients
    grep -q 'Address already in use' "$dir/log" || fail "$(<"$dir/log")"
  done
  SERVERS+=("$REDIS_PID")
  export RLOCK_REDIS=redis://127.0.0.1:$REDIS_PORT
}

try_port() { # PORT OPTION...: the server binds the port or fails, so there is no search for a free one, and no race
  REDIS_PORT=$1
  shift
  local dir=${REDIS_SOCK%/*}
  listening_at "$REDIS_PORT"
  "$REDIS_SERVER" --bind 127.0.0.1 "${LISTENING[@]}" --unixsocket "$REDIS_SOCK" --dir "$dir" \
    --save '' --appendonly no "$@" >"$dir/log" 2>&1 3>&- 4>&- &
  REDIS_PID=$!
  wait_until "$PATIENCE" is_up_or_gone "$dir/log" || return
  ! gone "$REDIS_PID"
}

listening_at() { # PORT: sets LISTENING to the server's options for it, which depend on TLS_ONLY
  LISTENING=(--port "$1")
  ((${#TLS_ONLY[@]} == 0)) || LISTENING=(--port 0 --tls-port "$1" "${TLS_ONLY[@]}")
}

is_up_or_gone() { has_text "$1" 'eady to accept connections' || gone "$REDIS_PID"; }

stop_redis() { stop "$REDIS_PID"; }

cli() { "$REDIS_CLI" -s "$REDIS_SOCK" "$@"; }

dump() { cli --no-raw DUMP "$1"; } # KEY: its value as printable text

is_static() { [[ $(ldd "$T/bin/rlock" 2>&1) == *'not a dynamic executable'* ]]; }

# Sanitizers take memory and time of their own, so limits do not apply to such a build.
is_sanitized() { grep -qs __asan_init "$T/bin/rlock"; }

# ---- assertions: each says what it saw

fail() {
  printf '%s\n' "$@" >&2
  return 1
}

same() { # ACTUAL EXPECTED
  [[ $1 == "$2" ]] || fail "expected: ${2@Q}" "     got: ${1@Q}"
}

contains() { # TEXT PART
  [[ $1 == *"$2"* ]] || fail "expected: ...${2@Q}..." "     got: ${1@Q}"
}

matches() { # TEXT EXTENDED-REGEX
  [[ $1 =~ $2 ]] || fail "expected: $2" "     got: ${1@Q}"
}

query() { # [JQ-OPTION...] FILTER: applied to the JSON that rlock printed
  same "$(jq "$@" <<<"$OUT")" true
}

exits() { # STATUS, of the last `try` or `finish`
  [[ $STATUS == "$1" ]] || fail "expected status $1, got $STATUS" "stdout: ${OUT-}" "stderr: ${ERR-}"
}

# refuses STATUS PART ARG...: rlock ARG... exits with STATUS, prints one line that contains PART, and writes nothing to
# Redis
refuses() {
  local want=$1 part=$2
  shift 2
  try "$@"
  exits "$want"
  same "$OUT" ''
  [[ $ERR == "rlock: "*"$part"* && $ERR != *$'\n'* ]] ||
    fail "expected one line with ${part@Q}" "     got: ${ERR@Q}" "     for: rlock ${*@Q}"
  same "$(cli DBSIZE)" 0
}
