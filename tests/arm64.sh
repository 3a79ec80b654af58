#!/usr/bin/env bash
# Builds rlock for arm64 and does its main job on an emulated processor: it holds and renews a lock for a command,
# refuses the lock to another, and ends the command when the lock is lost.
#   tests/arm64.sh      as root, on a Debian 13 for amd64; it installs the arm64 libraries beside the machine's own. The
#                       emulator of Debian 12 has no PR_SET_CHILD_SUBREAPER, so that `rlock run` ends with 71 there.
set -euo pipefail

root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
build=$root/build-arm64
export TEST_MARK=$build DEBIAN_FRONTEND=noninteractive

install() {
  bash "$root/tests/install-deps.sh" build server
  dpkg --add-architecture arm64
  apt-get -qq update
  apt-get -qq -y install --no-install-recommends g++-aarch64-linux-gnu qemu-user \
    lib{hiredis,ssl,zstd}-dev:arm64 zlib1g-dev:arm64 libfmt-dev:arm64 >/dev/null
}

build() {
  export PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig
  cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DRLOCK_WERROR=ON -DCMAKE_SYSTEM_NAME=Linux \
    -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
    -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu >/dev/null
  cmake --build "$build" --parallel "$(nproc)" --target rlock rlock-unit
}

# expect STATUS COMMAND...
expect() {
  local want=$1 got=0
  shift
  timeout 60 "$@" || got=$?
  [[ $got == "$want" ]] || { echo "arm64.sh: $got instead of $want: $*" >&2 && exit 1; }
}

main_job() {
  local rlock=(qemu-aarch64 "$build/rlock") holder
  "${rlock[@]}" --version
  expect 0 "${rlock[@]}" run --key job -- true
  expect 7 "${rlock[@]}" run --key job -- sh -c 'exit 7'
  "${rlock[@]}" run --key job --ttl 2s -- sleep 600 &
  holder=$!
  until [[ $(redis-cli -p 7777 EXISTS rlock:job) == 1 ]]; do sleep 0.1; done
  sleep 4 # two leases
  expect 75 "${rlock[@]}" run --key job --nonblock -- true
  "${rlock[@]}" status
  expect 0 "${rlock[@]}" release job --force
  got=0
  wait "$holder" || got=$?
  [[ $got == 76 ]] || { echo "arm64.sh: the holder ended with $got" >&2 && exit 1; }
  ! pgrep -x sleep || { echo 'arm64.sh: a command outlived its lock' >&2 && exit 1; }
}

install
build
qemu-aarch64 "$build/rlock-unit" | tail -n 1
redis-server --port 7777 --save '' >/dev/null &
trap 'kill %1' EXIT
export RLOCK_REDIS=redis://127.0.0.1:7777
until redis-cli -p 7777 PING >/dev/null; do sleep 0.1; done
main_job
echo 'arm64: rlock does its main job'
