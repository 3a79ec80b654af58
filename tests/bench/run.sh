#!/usr/bin/env bash
# Runs all benches, or those named. Prints the results as markdown, and at the end whether the targets were reached. All
# of them together take less than five minutes on two processors; the output becomes results.md, with charts of two
# tables.
#   tests/bench/run.sh [NAME...]
#
# Other locks are measured where they are installed: Debian's etcd-server, etcd-client, python3-redis. With musl-tools
# the command under the lock starts faster and hides less of the lock's cost.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

version() { "$@" 2>&1 | grep -Eo '[0-9]+(\.[0-9]+)+' | head -n 1; }

versions() { # PROGRAM...: of those that are here
  local program
  for program; do
    ! type -P "$program" >/dev/null || echo -n ", $program $(version "$program" --version)"
  done
}

introduction() {
  cat <<'END'
# What the benches measured

This is what `tests/bench/run.sh` prints. `limit` is the yardstick: 60 lines of C that take a lock, run a command and
release the lock, without renewal, signals or crash handling. The other tools are Debian's versions. Where they start
one process or none, `rlock` starts two; that, and the work of its scripts, makes the difference.

`none` runs the command without a lock. "x limit" and "more than limit" are medians over the rounds, each of which runs
every tool once, so they are not exactly the quotient and the difference of the medians beside them.

END
  echo "$(date -u +%F) on $(nproc) processors ($(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)), Linux $(uname -r)," \
    "rlock $(version rlock --version)$(versions "$REDIS_SERVER" flock etcd)."
}

measure() { # NAME...
  local name
  introduction
  for name; do SHARED_TARGETS=$TARGETS bash "$bench/$name.sh"; done
  show_targets
}

all=(overhead network handoff crowd throughput memory calls slowest renewals fleet status tls market)
if (($#)); then
  measure "$@"
else
  measure "${all[@]}" | tee "$bench/results.md"
  python3 "$bench/chart.py" "$bench/results.md" "$bench"
fi
