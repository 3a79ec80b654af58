#!/usr/bin/env bash
# Whether a program does rlock's main job where it is: it holds and renews a lock for a command, refuses the lock to
# another, and ends the command when the lock is lost.
#   tests/main_job.sh COMMAND...     such as rlock, or qemu-aarch64 build/rlock, or chroot ROOT /usr/bin/rlock
set -euo pipefail

rlock=("$@")
export RLOCK_REDIS=redis://127.0.0.1:7777

# expect STATUS COMMAND...
expect() {
  local want=$1 got=0
  shift
  timeout 60 "$@" || got=$?
  [[ $got == "$want" ]] || { echo "main_job.sh: $got instead of $want: $*" >&2 && exit 1; }
}

redis-server --port 7777 --save '' >/dev/null &
trap 'kill %1' EXIT
until redis-cli -p 7777 PING >/dev/null 2>&1; do sleep 0.1; done

"${rlock[@]}" --version
expect 0 "${rlock[@]}" run --key job -- true
expect 7 "${rlock[@]}" run --key job -- sh -c 'exit 7'
"${rlock[@]}" run --key job --ttl 2s -- sleep 7654321 &
until [[ $(redis-cli -p 7777 EXISTS rlock:job) == 1 ]]; do sleep 0.1; done
sleep 4 # two leases
expect 75 "${rlock[@]}" run --key job --nonblock -- true
"${rlock[@]}" status
expect 0 "${rlock[@]}" release job --force
got=0
wait %2 || got=$?
[[ $got == 76 ]] || { echo "main_job.sh: the holder ended with $got" >&2 && exit 1; }
! grep -qsz '^7654321$' /proc/[0-9]*/cmdline || { echo 'main_job.sh: a command outlived its lock' >&2 && exit 1; }
echo 'rlock does its main job'
