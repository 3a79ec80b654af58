#!/usr/bin/env bash
# Builds rlock for arm64 and does its main job on an emulated processor.
#   tests/arm64.sh      as root, on a Debian 13 for amd64; it installs the arm64 libraries beside the machine's own. The
#                       emulator of Debian 12 has no PR_SET_CHILD_SUBREAPER, so that `rlock run` ends with 71 there.
set -euo pipefail

root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
build=$root/build-arm64

bash "$root/tests/install-deps.sh" build server arm64 release
cmake -S "$root" -B "$build" -DCMAKE_TOOLCHAIN_FILE="$root/src/packaging/arm64.cmake" -DRLOCK_WERROR=ON >/dev/null
cmake --build "$build" --parallel "$(nproc)" --target rlock rlock-unit
qemu-aarch64 "$build/rlock-unit" | tail -n 1
bash "$root/tests/main_job.sh" qemu-aarch64 "$build/rlock"
