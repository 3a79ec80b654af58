#!/usr/bin/env bash
# Installs what is missing, builds, and runs all tests, or those that are named.
#   tests/run.sh [NAME...]      NAME is a room (lock), a file of tests (queue) or both (lock/queue)
#   tests/run.sh --quick        the tests that the work since main has touched, and those of the rooms that it has
#
#   RLOCK=path                  test this binary instead of building one
#   RLOCK_BUILD_DIR=dir         build there instead of in build
#   RLOCK_INSTALL=no            install nothing: what is missing makes tests fail
#   RLOCK_CMAKE_ARGS="..."      for cmake, such as -DRLOCK_SANITIZE=address,undefined
#   REDIS_SERVER=valkey-server  test against that server
#   JOBS=n                      run this many files at a time (6, since tests mostly wait)
#   PATIENCE=n                  seconds that a single step of a test may take (20)
#
# Whatever starts it, such as nohup, cron or a CI, the tests find the same: signals at their defaults, a session of its
# own, no standard input, umask 022, and no environment but the variables above and those of the build tools.
set -euo pipefail
shopt -s extglob nullglob

begin_anew() { # ARG...: runs this script with them in such surroundings
  local name home kept=() status=0
  while IFS= read -r name; do
    kept+=("$name=${!name}")
  done < <(compgen -e | grep -xE 'PATH|TMPDIR|CI|JOBS|PATIENCE|REDIS_SERVER|RLOCK(_BUILD_DIR|_CMAKE_ARGS|_INSTALL)?|CC|CXX|C(MAKE|CACHE)_.*|.*_proxy')
  unset HOME # bash then finds the one of the user database
  home=~
  umask 022
  kept+=("HOME=$home" "USER=$(id -un)" "LOGNAME=$(id -un)" TERM=dumb LC_ALL=C RLOCK_TESTS_BEGAN=yes)
  env -i "${kept[@]}" setsid env --default-signal bash "$0" "$@" </dev/null &
  trap 'kill -TERM -- -$!' HUP INT TERM # another session hears nothing of our terminal's Ctrl-C
  wait $! || status=$?
  while kill -0 $! 2>/dev/null; do wait $! || status=$?; done # such a signal has interrupted the wait
  exit "$status"
}

[[ -n ${RLOCK_TESTS_BEGAN-} ]] || begin_anew "$@"
unset RLOCK_TESTS_BEGAN

root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
build=${RLOCK_BUILD_DIR:-$root/build}

install() { # GROUP...
  [[ ${RLOCK_INSTALL-} == no ]] || bash "$root/tests/install-deps.sh" "$@"
}

build() {
  local options
  read -ra options <<<"${RLOCK_CMAKE_ARGS:-}"
  cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release "${options[@]}" >/dev/null
  cmake --build "$build" --parallel "$(nproc)" --target rlock rlock-unit
  # The simulator needs a Lua that users need not install; its tests are skipped without it.
  [[ ! -e /usr/include/lua5.1/lua.h ]] || cmake --build "$build" --parallel "$(nproc)" --target rlock-sim
}

# touched: prints the names of what has been changed since main, or on main in the last commit, committed or not
touched() {
  local base
  base=$(git -C "$root" merge-base main HEAD)
  [[ $base != $(git -C "$root" rev-parse HEAD) ]] || base=$(git -C "$root" rev-parse -q --verify HEAD~ || echo "$base")
  { git -C "$root" diff --name-only "$base" && git -C "$root" ls-files --others --exclude-standard; } |
    sed -nE 's,^(src/base|tests/unit)/.*,unit,p; s,^src/(cli|lock|observe|redis|run)/.*,\1,p
      s,^tests/([a-z]+/[a-z_]+)\.bats$,\1,p; s,^(man|completions|src/packaging)/.*|^README\.md|^src/main\.cc,cli,p
      s,^(tests/support/.*|CMakeLists\.txt)$,cli\nlock\nobserve\nredis\nrun\nunit,p' | sort -u
}

select_files() { # NAME...: sets files
  local name found
  files=()
  (($#)) || files=("$root"/tests/*/*.bats)
  for name; do
    found=("$root/tests/$name"/*.bats)
    ((${#found[@]})) || found=("$root"/tests/{,*/}"$name"?(_*).bats)
    ((${#found[@]})) || { echo "run.sh: there are no tests of that name: $name" >&2; exit 64; }
    files+=("${found[@]}")
  done
  mapfile -t files < <(printf '%s\n' "${files[@]}" | sort -u)
}

run() { # FILE...: repeats the failures at the end, since they have long scrolled away by then
  local log passed failed skipped planned status=0
  log=$(mktemp)
  run_bats "$@" | tee "$log" || status=$?
  planned=$(sed -n 's/^1\.\.//p' "$log" | paste -sd +)
  skipped=$(grep -c '^ok .* # skip' "$log") || true
  passed=$(($(grep -c '^ok ' "$log") - skipped)) || true
  failed=$((planned - passed - skipped)) # a test that bats lost has failed too
  grep '^not ok ' "$log" || true
  rm "$log"
  echo "$passed passed, $failed failed, $skipped skipped"
  return $((status || failed))
}

# Those of one file follow each other: to start every one by GNU parallel would cost more. The longest files come first.
run_together() { # FILE...
  local files jobs=${JOBS:-6} parallel=()
  ((jobs < 2)) || parallel=(--jobs "$jobs" --no-parallelize-within-files)
  mapfile -t files < <(stat --format '%s %n' "$@" | sort -rn | cut -d ' ' -f 2-)
  bats --tap --timing "${parallel[@]}" "${files[@]}"
}

run_bats() { # FILE...: at the same time, but for those that need the machine to themselves
  local alone=$root/tests/run/crowd.bats together=() file status=0
  for file; do [[ $file == "$alone" ]] || together+=("$file"); done
  ((${#together[@]} == $#)) || bats --tap --timing "$alone" || status=$?
  ((${#together[@]} == 0)) || run_together "${together[@]}" || status=$?
  return "$status"
}

if [[ ${1-} == --quick ]]; then
  names=$(touched)
  [[ -n $names ]] || { echo 'run.sh: no room has been touched since main'; exit 0; }
  # shellcheck disable=SC2086 # one word each
  set -- $names
fi
select_files "$@"
if [[ -n ${RLOCK:-} ]]; then
  install server test
else
  install build server test
  build
fi
RLOCK=$(realpath "${RLOCK:-$build/rlock}")
export RLOCK
run "${files[@]}"
