#!/usr/bin/env bash
# Tries to break mutual exclusion by many runs of rlock under many faults, and judges what they did. See README.md.
#   tests/torture/run.sh [OPTION...]
#
#   --seconds N     how long there are faults (60); it ends when everybody has been served
#   --seed N        decides the faults and what the clients do; the same seed gives the same schedule
#   --topology T    single, sentinel, cluster or quorum
#   --lossy         with faults under which Redis loses locks: two may hold at once, and only the fence must hold
#   --most N        at most this many clients at a time (150)
#   --keep          keeps the history even of a sound run
#
#   RLOCK=path          torture this binary instead of building one
#   RLOCK_BESIDE=path   every other run uses this binary, as in a fleet that is being upgraded
set -euo pipefail

here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
root=$(realpath "$here/../..")
build=${RLOCK_BUILD_DIR:-$root/build}

if [[ -z ${RLOCK:-} ]]; then
  bash "$root/tests/install-deps.sh" build server test
  cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release >/dev/null
  cmake --build "$build" --parallel "$(nproc)" --target rlock
fi
bin=$(mktemp -d)
trap 'rm -r "$bin"' EXIT
ln -s "$(realpath "${RLOCK:-$build/rlock}")" "$bin/rlock"
if [[ -n ${RLOCK_BESIDE:-} ]]; then
  ln -s "$(realpath "$RLOCK_BESIDE")" "$bin/rlock-beside"
fi
g++ -std=c++20 -O2 -o "$bin/witness" "$here/witness.cc"
g++ -std=c++20 -O2 -shared -fPIC -o "$bin/clock.so" "$here/clock.cc"
export PATH=$bin:$PATH TORTURE_WITNESS=$bin/witness TORTURE_CLOCK=$bin/clock.so
export PYTHONDONTWRITEBYTECODE=1
python3 "$here/torture.py" "$@"
