#!/usr/bin/env bash
# All benches, or those named. Prints markdown: what was measured, and at the end the targets and whether they were reached.
# Takes less than five minutes on two processors.
#   tests/bench/run.sh [NAME...]
#
# Other locks are measured where they are installed: Debian's etcd-server, etcd-client, python3-redis. So is musl-tools
# used where it is: what runs under the locks then starts sooner, and hides less of their cost.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version() { "$@" 2>&1 | grep -Eo '[0-9]+(\.[0-9]+)+' | head -n 1; }

versions() { # PROGRAM...: of those that are here
  local program
  for program; do
    ! type -P "$program" >/dev/null || echo -n ", $program $(version "$program" --version)"
  done
}

(($#)) || set -- overhead handoff crowd throughput memory calls renewals status tls market
echo "$(date -u +%F) on $(nproc) processors ($(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)), Linux $(uname -r)," \
  "rlock $(version rlock --version)$(versions "$REDIS_SERVER" flock etcd)."
for name; do SHARED_TARGETS=$TARGETS bash "$bench/$name.sh"; done
