# shellcheck shell=bash
# What the benches share: private servers, the other tools, tables, targets. Each bench sources it, prints markdown, and
# compares its figures with targets by calling `target`; see run.sh. RLOCK is the binary to measure, by default
# build/rlock.
set -euo pipefail

bench=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
tests=$(dirname "$bench")
RLOCK=${RLOCK:-$tests/../build/rlock}
# shellcheck source=tests/support/helpers.bash
source "$tests/support/helpers.bash"
# shellcheck source=tests/support/servers.bash
source "$tests/support/servers.bash"

TRUE=$(type -P true)
PATIENCE=120 # seconds: with a thousand waiters a step takes its time

cleanup() {
  until no_leftovers; do
    # shellcheck disable=SC2046 # one word each
    kill -KILL $(leftovers) || true # they may have ended by themselves
  done
  stop "${SERVERS[@]}"
  [[ -n ${SHARED_TARGETS-} || ${0##*/} == run.sh || ! -s $TARGETS ]] || show_targets
  rm -rf "$T"
} 2>/dev/null

# build NAME...: compiles programs of this directory, statically, so that they start as fast as possible. What runs
# under the lock is built with musl where that is installed: it starts ten times faster than with glibc, which makes the
# lock's own cost visible.
build() {
  local name compiler libraries
  for name; do
    compiler=cc
    [[ $name != @(stamp|trade) ]] || ! command -v musl-gcc >/dev/null || compiler=musl-gcc
    libraries=()
    [[ $name != bare ]] || libraries=(-lssl -lcrypto -Xlinker --no-warnings)
    "$compiler" -std=gnu11 -O2 -Wall -Wextra -static -o "$T/bin/$name" "$bench/$name.c" "${libraries[@]}"
  done
}

# ---- peers

start_etcd() { # sets ETCD
  local port log=$T/etcd.log
  until grep -qs 'ready to serve client requests' "$log"; do
    port=$((20000 + RANDOM % 12000))
    ETCD=http://127.0.0.1:$port
    etcd --data-dir "$(mktemp -d "$T/etcd.XXXXXX")" --listen-client-urls "$ETCD" --advertise-client-urls "$ETCD" \
      --listen-peer-urls "http://127.0.0.1:$((port + 12000))" >"$log" 2>&1 &
    SERVERS+=($!)
    wait_until "$PATIENCE" etcd_is_up_or_gone "$!"
  done
}

etcd_is_up_or_gone() { grep -qs 'ready to serve client requests' "$T/etcd.log" || gone "$1"; } # PID

PYTHON=
for python in $(type -ap python3); do
  ! "$python" -c 'import redis' 2>/dev/null || PYTHON=$(realpath "$python")
done

# What articles about shell scripts recommend: two calls of redis-cli, and a sleep while the lock is held.
redis_cli_loop='port=$1 key=$2 token=$$-$RANDOM-$RANDOM
shift 2
until [[ $("$0" -p "$port" SET "$key" "$token" NX PX 30000) == OK ]]; do sleep 0.1; done
"$@"
status=$?
script="if redis.call(\"get\", KEYS[1]) == ARGV[1] then return redis.call(\"del\", KEYS[1]) end return 0"
"$0" -p "$port" EVAL "$script" 1 "$key" "$token" >/dev/null
exit $status'

redis_py='import redis, subprocess, sys
with redis.Redis(port=int(sys.argv[1])).lock(sys.argv[2], timeout=30):
    status = subprocess.call(sys.argv[3:])
sys.exit(status)'

# present PEER...: prints those that are installed
present() {
  local peer
  for peer; do
    case $peer in
      etcdctl) type -P etcd etcdctl >/dev/null || continue ;;
      redis-py) [[ -n $PYTHON ]] || continue ;;
    esac
    echo "$peer"
  done
}

# under PEER KEY: sets UNDER, the words that run the command after them under that lock
under() {
  case $1 in
    none) UNDER=() ;;
    rlock) UNDER=("$T/bin/rlock" run --redis "$RLOCK_REDIS" --key "$2" --ttl 30 --) ;;
    limit) UNDER=("$T/bin/limit" "$REDIS_PORT" "$2") ;;
    flock) UNDER=(flock "$T/lock.$2") ;;
    redis-cli) UNDER=(bash -c "$redis_cli_loop" "$REDIS_CLI" "$REDIS_PORT" "$2") ;;
    etcdctl) UNDER=(etcdctl --endpoints "$ETCD" lock "$2" --) ;;
    redis-py) UNDER=("$PYTHON" -c "$redis_py" "$REDIS_PORT" "$2") ;;
  esac
}

# ask COMMAND...: sends it to the private Redis without starting a process; sets REPLY to a number or simple string
ask() {
  local connection
  exec {connection}<>"/dev/tcp/127.0.0.1/$REDIS_PORT"
  echo "$*" >&"$connection"
  IFS=$'\r' read -r REPLY <&"$connection"
  exec {connection}>&-
  REPLY=${REPLY#[:+]}
}

# ---- numbers and tables

calc() { awk "BEGIN {printf \"$1\", ($2)}"; } # FORMAT EXPRESSION

# quantile Q: of the numbers on standard input, one a line
quantile() { sort -n | awk -v q="$1" '{v[NR] = $1} END {print v[int(q * (NR - 1) + 1.5)]}'; }

row() { # CELL...
  printf '|'
  printf ' %s |' "$@"
  echo
}

heading() { # TITLE COLUMN...
  printf '\n### %s\n\n' "$1"
  shift
  row "$@"
  row "${@//*/---}"
}

# target WHAT most|least LIMIT MEASURED [UNIT]: records whether the target was reached
target() {
  local sign='<=' verdict=MISSED
  [[ $2 == most ]] || sign='>='
  [[ $(calc %d "$4 $sign $3") == 0 ]] || verdict=reached
  row "$1" "at $2 $3${5-}" "$4${5-}" "$verdict" >>"$TARGETS"
}

show_targets() {
  heading Targets what target measured verdict
  cat "$TARGETS"
}

hermetic
TARGETS=${SHARED_TARGETS:-$T/targets}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
