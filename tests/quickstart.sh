#!/usr/bin/env bash
# Shows what rlock is for. Installs what is missing, builds, and starts a Redis of its own that it stops again.
#   RLOCK_CMAKE_ARGS     see tests/run.sh
set -euo pipefail

tests=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
build=$tests/../build

build() {
  local options
  read -ra options <<<"${RLOCK_CMAKE_ARGS:-}"
  mkdir -p "$build"
  echo 'Building rlock, a minute or so the first time ...'
  {
    cmake -S "$tests/.." -B "$build" -DCMAKE_BUILD_TYPE=Release "${options[@]}" &&
      cmake --build "$build" --parallel "$(nproc)" --target rlock
  } >"$build/quickstart.log" 2>&1 || {
    cat "$build/quickstart.log" >&2
    exit 1
  }
}

cleanup() {
  until no_leftovers; do
    # shellcheck disable=SC2046 # one word each
    kill -KILL $(leftovers) || true # they may have ended by themselves
  done
  stop "${SERVERS[@]}"
  rm -rf "$T"
} 2>/dev/null

title() { printf '\n%s\n' "$*"; }

show() { # COMMAND...: prints it as a user would type it, and its output
  local status=0
  echo "  \$ $*"
  "$@" >"$T/shown" 2>&1 || status=$?
  sed 's/^/  /' "$T/shown"
  ((status == 0)) || echo "  (exit status $status)"
}

oversell() {
  title 'A stock of 50. Each of 16 buyers reads it, thinks, and decrements it, until it is sold out:'
  sell 50
  echo "  without a lock: $(cli GET stock) left"
  sell 50 rlock run --key stock --
  echo "  with rlock run: $(cli GET stock) left"
}

hold_backup() {
  cat >"$T/bin/backup.sh" <<END
#!/bin/sh
echo \$\$ >$T/backup.pid
exec sleep 600
END
  chmod +x "$T/bin/backup.sh"
  start backup rlock run --key backup -- backup.sh
  wait_until "$PATIENCE" test -s "$T/backup.pid"
}

kill_holder() {
  local begin command
  command=$(<"$T/backup.pid")
  disown "$PID" # otherwise this shell would report its death
  begin=$(now_ms)
  show kill -9 "$PID"
  wait_until "$PATIENCE" gone "$command"
  echo "  backup.sh, process $command, was gone within $(($(now_ms) - begin + 10)) ms"
}

bash "$tests/install-deps.sh" build server
build
# shellcheck source=tests/support/helpers.bash
source "$tests/support/helpers.bash"
RLOCK=$build/rlock
hermetic
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
start_redis
echo "A private redis-server listens on port $REDIS_PORT."

oversell

title 'While one machine runs a backup, everybody can see it:'
echo '  $ rlock run --key backup -- backup.sh &'
hold_backup
show rlock status

title 'A second one does not start:'
show rlock run --nonblock --key backup -- backup.sh

title 'kill -9 of the first: its command does not outlive it.'
kill_holder

title 'All tests: bash tests/run.sh'
