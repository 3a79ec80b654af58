#!/usr/bin/env bash
# Draws the pictures of the README, man/status.svg and man/timeline.svg, from what rlock prints on a terminal. It starts
# a Redis of its own, gives it a believable past and present, and stops it again.
#   tests/pictures.sh [DIRECTORY]     default: man
#   RLOCK    the program [build/rlock]
set -euo pipefail

tests=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
target=${1:-$tests/../man}

# shellcheck source=tests/support/helpers.bash
source "$tests/support/helpers.bash"

cleanup() {
  stop "${RUNNING[@]}"
  stop "${SERVERS[@]}"
  rm -rf "$T"
}

# Commands that work until they are stopped, and one that is done at once.
make_commands() {
  local name
  for name in backup.sh deploy.sh rsync; do printf '#!/bin/sh\nexec sleep 600\n' >"$T/bin/$name"; done
  printf '#!/bin/sh\n' >"$T/bin/report.sh"
  chmod +x "$T"/bin/{*.sh,rsync}
}

# job KEY HOLDER OPTION... -- COMMAND...: a run that goes on
job() {
  start "job$((++jobs))" rlock run -k "$1" --holder "$2" "${@:3}"
}

held() { # KEY COUNT
  [[ $(rlock status "$1" --json | jq '.[0].holders | length') == "$2" ]]
}

ended_seconds_ago() { rlock status report | grep -q ' [1-9]s ago'; }

present() {
  job backup root@db1 -- backup.sh --full
  job copies root@web1 --slots 3 -- rsync -a site/ web2:
  job copies root@web1 --slots 3 -- rsync -a site/ web3:
  job deploy-web ci@runner7 --ttl 1m --note 'release 42' -- deploy.sh web
  wait_until "$PATIENCE" held backup 1
  wait_until "$PATIENCE" held copies 2
  wait_until "$PATIENCE" held deploy-web 1
  job deploy-web ci@runner9 --note 'release 43' -- deploy.sh web
  wait_for_text 'waiting for deploy-web' "$T/job$jobs.err"
  rlock run -k report --holder cron@app2 --min-hold 5m -- report.sh
  wait_until "$PATIENCE" ended_seconds_ago
  cli SET rlock:legacy worker-7 PX 25000 >/dev/null
}

draw() { # NAME COLUMNS COMMAND...
  LC_ALL=C.UTF-8 TERM=xterm python3 "$tests/support/picture.py" "$2" "${@:3}" >"$T/picture"
  cp "$T/picture" "$target/$1.svg"
}

jobs=0
hermetic
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
start_redis
make_commands
python3 "$tests/support/past.py" runs | cli >/dev/null
present
python3 "$tests/support/past.py" holders | cli >/dev/null
draw status 132 rlock status
draw timeline 100 rlock log --timeline
