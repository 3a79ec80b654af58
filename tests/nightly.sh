#!/usr/bin/env bash
# Checks that take too long for every change. A step that fails does not stop the others; the failures are listed last.
#   tests/nightly.sh [STEP...]   of tidy, sanitizers, shared, arm64, fuzz, model, sim, mutants, controls, torture,
#                                upgrade, release; or all
#
#   FUZZ_SECONDS=n      for each target (300)
#   FUZZ_RUNS=n         tries n new inputs of each target instead, the same ones each time
#   SIM_SECONDS=n       of simulation on each processor (3600)
#   TORTURE_SECONDS=n   for each topology (1800)
#   ALPINE=file         an alpine-minirootfs-VERSION-x86_64.tar.gz, in which release tries the program (busybox stands in)
#   NIGHTLY_DIR=dir     builds, corpora, and inputs that made a target fail, kept from night to night (build-nightly)
#
# The sanitizers are those for addresses and undefined behaviour. rlock has no threads, so there is no thread sanitizer.
set -euo pipefail

here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
root=$(dirname "$here")
dir=${NIGHTLY_DIR:-$root/build-nightly}
sanitize=-DRLOCK_SANITIZE=address,undefined
earlier=v1.0.0 # the first whose locks every later version can read

# shellcheck source=tests/support/steps.bash
source "$here/support/steps.bash"

# What .clang-tidy asks for, of several files at once: most of the time goes into the headers of the libraries.
tidy() {
  prepare_tidy || { red+=("tidy cannot be prepared") && return; }
  step tidy tidy_all
}

prepare_tidy() {
  bash "$here/install-deps.sh" build tidy && cmake -S "$root" -B "$dir/tidy" >/dev/null
}

tidy_all() {
  sed -n 's/^ *"file": "\(.*\)".*/\1/p' "$dir/tidy/compile_commands.json" |
    grep -e "^$root/src/" -e '/rlock-core.dir/Unity/' |
    xargs -d '\n' -P "$(nproc)" -n 1 clang-tidy -p "$dir/tidy" --config-file="$root/.clang-tidy" \
      --checks=-bugprone-suspicious-include --quiet
}

# A sanitized program is slow to start, so fewer tests run at a time, and their steps may take longer.
sanitizers() {
  RLOCK_BUILD_DIR=$dir/sanitized RLOCK_CMAKE_ARGS=$sanitize JOBS=2 PATIENCE=60 step sanitizers bash "$here/run.sh"
}

# The other build, as distributions want it: with shared libraries, and position-independent; and each file by itself.
shared() {
  RLOCK_BUILD_DIR=$dir/shared RLOCK_CMAKE_ARGS='-DRLOCK_SHARED_LIBRARIES=ON -DRLOCK_UNITY=OFF' step shared bash "$here/run.sh"
}

# Built for another processor, and run on an emulated one.
arm64() {
  local why
  # shellcheck source=tests/support/machines.bash
  source "$here/support/machines.bash"
  if why=$(why_no_machines trixie); then
    echo "nightly.sh: arm64 is skipped: $why"
    return
  fi
  make_machine arm64 trixie
  step arm64 on arm64 'bash tests/arm64.sh'
}

fuzz() {
  local source
  prepare_fuzz || { red+=("fuzz cannot be prepared") && return; }
  for source in "$here"/fuzz/*.cc; do step "fuzz $(basename "$source" .cc)" fuzz_one "$(basename "$source" .cc)"; done
}

prepare_fuzz() {
  bash "$here/install-deps.sh" build fuzz &&
    CXX=clang++ cmake -S "$root" -B "$dir/fuzz" -DRLOCK_FUZZ=ON -DRLOCK_WERROR=ON "$sanitize" >/dev/null
}

fuzz_one() { # TARGET: memory is limited, since rlock promises limits for replies and files
  local seeds=$here/fuzz/seeds/$1 corpus=$dir/corpus/$1 log=$dir/fuzz-$1.log
  local limit=(-max_total_time="${FUZZ_SECONDS:-300}")
  [[ ! -v FUZZ_RUNS ]] || limit=(-runs="$FUZZ_RUNS" -seed=1)
  cmake --build "$dir/fuzz" --parallel "$(nproc)" --target "fuzz-$1" || return
  mkdir -p "$corpus"
  [[ ! -d $seeds ]] || cp "$seeds"/* "$corpus"
  ASAN_OPTIONS=quarantine_size_mb=16 "$dir/fuzz/fuzz-$1" "${limit[@]}" \
    -max_len=4096 -timeout=10 -malloc_limit_mb=64 -rss_limit_mb=1024 -artifact_prefix="$dir/fuzz-$1-" "$corpus" >"$log" 2>&1 ||
    { tail -n 40 "$log" && return 1; }
  grep DONE "$log" # shows how many inputs were tried, and how much code they have reached
}

# The model of the queue and the lease with any two faults, a minute's work; tests/model tries any single one.
model() {
  mkdir -p "$dir"
  c++ -std=c++20 -O2 -o "$dir/queue_lease" "$here/model/queue_lease/queue_lease.cc"
  step model "$dir/queue_lease" 2
}

# Worlds that nobody has seen before, on each processor.
sim() {
  RLOCK_BUILD_DIR=$dir/release step sim \
    bash "$here/sim/run.sh" --seconds "${SIM_SECONDS:-3600}" --commands 100000
}

torture() {
  local topology
  for topology in single sentinel cluster quorum; do
    RLOCK_BUILD_DIR=$dir/release step "torture $topology" \
      bash "$here/torture/run.sh" --seconds "${TORTURE_SECONDS:-1800}" --topology "$topology"
  done
}

# A fleet is upgraded machine by machine, so the earlier version must work beside the new one.
upgrade() {
  local topology
  if ! git -C "$root" rev-parse --quiet --verify "refs/tags/$earlier" >/dev/null; then
    echo "nightly.sh: upgrade is skipped: there is no tag $earlier here"
    return
  fi
  build_earlier || { red+=("upgrade: $earlier does not build") && return; }
  for topology in single quorum; do
    RLOCK_BUILD_DIR=$dir/release RLOCK_BESIDE=$dir/earlier/build/rlock step "upgrade $topology" \
      bash "$here/torture/run.sh" --seconds "${TORTURE_SECONDS:-1800}" --topology "$topology"
  done
}

build_earlier() {
  bash "$here/install-deps.sh" build &&
    mkdir -p "$dir/earlier" &&
    git -C "$root" archive "$earlier" | tar -x -C "$dir/earlier" &&
    cmake -S "$dir/earlier" -B "$dir/earlier/build" -DCMAKE_BUILD_TYPE=Release >/dev/null &&
    cmake --build "$dir/earlier/build" --parallel "$(nproc)" --target rlock
}

mutants() { step mutants python3 "$here/mutants/plant.py" "$dir/mutants"; }

controls() { step controls bash "$here/torture/controls.sh"; }

# The files of a release: made twice on each Debian, the second time as another would do it, and used on both, on an older
# Debian, and where there is next to nothing.
release() {
  local suite other why
  # shellcheck source=tests/support/machines.bash
  source "$here/support/machines.bash"
  if why=$(why_no_machines bookworm trixie bullseye); then
    echo "nightly.sh: release is skipped: $why"
    return
  fi
  for suite in bookworm trixie; do
    make_machine release "$suite"
    step "release: $suite makes it" on release 'bash tests/install-deps.sh build arm64 dist
      cmake -S . -B build >/dev/null && cmake --build build --target dist'
    step "release: $suite makes the same again" on release "git clone -q . '/root/a copy' && cd '/root/a copy' &&
      umask 077 && export TZ=Asia/Tokyo && cmake -S . -B there >/dev/null && cmake --build there --target dist >/dev/null &&
      diff -r /root/rlock/build/dist there/dist"
    for other in bookworm trixie bullseye; do
      make_machine user "$other"
      cp -r "$machines/release/root/rlock/build/dist" "$machines/user/root/dist"
      [[ -z ${ALPINE-} ]] || cp "$ALPINE" "$machines/user/root/alpine.tar.gz"
      if [[ $other == bullseye ]]; then
        step "release: $suite's, on $other" on user 'bash tests/install-deps.sh server
          dpkg --install /root/dist/rlock_*_amd64.deb && bash tests/main_job.sh rlock'
      else
        step "release: $suite's, on $other" on user 'bash tests/release.sh /root/dist'
        step "release: $suite's .deb, on $other" on user 'bash tests/installed.sh /root/dist/rlock_*_amd64.deb'
      fi
    done
  done
}

(($#)) || set -- tidy sanitizers shared arm64 fuzz model sim mutants controls torture upgrade release
for name; do
  case $name in
    tidy | sanitizers | shared | arm64 | fuzz | model | sim | mutants | controls | torture | upgrade | release) "$name" ;;
    *)
      echo "nightly.sh: there is no such step: $name" >&2
      exit 64
      ;;
  esac
done

conclude
