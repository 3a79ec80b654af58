# The suite itself.

load ../support/helpers

@test "the tests pass when they are started with ignored signals, a strange umask, language and home" {
  export RLOCK=$T/bin/rlock RLOCK_INSTALL=no JOBS=2
  (umask 077 && cd / && HOME=/nowhere LANG=tlh LC_ALL=tlh RLOCK_PREFIX=strange: REDIS_URL=redis://nowhere.invalid \
    PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin env --ignore-signal=HUP,INT,QUIT nohup bash "$BATS_TEST_DIRNAME/../run.sh" run/start) >"$T/out" 2>&1 || fail "$(<"$T/out")"
  matches "$(tail -n 1 "$T/out")" '^[0-9]+ passed, 0 failed'
}

@test "a test that leaves a server behind fails, and the server is killed" {
  start_redis
  mkdir "${REDIS_SOCK%/*}/dump.rdb" # so that it cannot save its data, and does not end on TERM
  cli CONFIG SET save '1 1'
  if clean_up 2>"$T/err"; then fail 'it passes'; fi
  contains "$(<"$T/err")" "left behind: $REDIS_PID redis-server"
  wait_until "$PATIENCE" gone "$REDIS_PID"
}

@test "the tests have the home of the user database, whatever HOME was" {
  local repository=$T/repository home
  export RLOCK=$T/bin/rlock RLOCK_INSTALL=no PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  mkdir -p "$repository/tests/lock"
  cp "$BATS_TEST_DIRNAME/../run.sh" "$repository/tests"
  echo "@test \"home\" { echo \"\$HOME\" >$T/home; }" >"$repository/tests/lock/queue.bats"
  HOME=/nowhere bash "$repository/tests/run.sh" >"$T/out" || fail "$(<"$T/out")"
  home=$(getent passwd "$(id -u)" | cut -d : -f 6)
  same "$(<"$T/home")" "$home"
}

@test "--quick runs the tests of the rooms and the files that were changed since main, committed or not" {
  optional git git
  local repository=$T/repository file
  export RLOCK=$T/bin/rlock PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin # without what bats puts there
  in_it() { git -C "$repository" -c user.name=x -c user.email=x "$@"; }
  mkdir -p "$repository"/{src,tests}/{lock,observe,redis,run}
  cp "$BATS_TEST_DIRNAME/../run.sh" "$repository/tests"
  echo : >"$repository/tests/install-deps.sh"
  for file in lock/{queue,quorum} observe/{log,status} redis/tls run/start; do
    echo "@test \"$file\" { :; }" >"$repository/tests/$file.bats"
  done
  in_it init -q -b main
  in_it add -A
  in_it commit -q -m before
  same "$(bash "$repository/tests/run.sh" --quick)" 'run.sh: no room has been touched since main'
  mkdir -p "$repository"/{man,tests/cli}
  echo '@test "cli/docs" { :; }' >"$repository/tests/cli/docs.bats"
  in_it add -A
  in_it commit -q -m docs
  echo >"$repository/man/rlock.1"
  bash "$repository/tests/run.sh" --quick >"$T/out" || fail "$(<"$T/out")"
  same "$(sed -nE 's/^ok [0-9]+ (.*) in .*/\1/p' "$T/out")" cli/docs
  in_it add -A
  in_it commit -q -m manual
  bash "$repository/tests/run.sh" --quick >"$T/out" || fail "$(<"$T/out")"
  same "$(sed -nE 's/^ok [0-9]+ (.*) in .*/\1/p' "$T/out")" cli/docs
  in_it checkout -q -b work
  echo >"$repository/src/observe/x.cc"
  in_it add -A
  in_it commit -q -m after
  echo >"$repository/src/run/new.cc"
  echo >>"$repository/tests/lock/queue.bats"
  bash "$repository/tests/run.sh" --quick >"$T/out" || fail "$(<"$T/out")"
  same "$(sed -nE 's/^ok [0-9]+ (.*) in .*/\1/p' "$T/out" | sort | xargs)" 'lock/queue observe/log observe/status run/start'
}

@test "RLOCK_INSTALL=no, which ctest sets, installs nothing" {
  local repository=$T/repository build
  build=$(dirname "$(realpath "$T/bin/rlock")")
  [[ ! -e $build/CTestTestfile.cmake ]] || grep -qF RLOCK_INSTALL=no "$build/CTestTestfile.cmake" || fail "ctest does not set it"
  export RLOCK=$T/bin/rlock PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  mkdir -p "$repository/tests/lock"
  cp "$BATS_TEST_DIRNAME/../run.sh" "$repository/tests"
  echo "echo \"\$@\" >>$T/installed" >"$repository/tests/install-deps.sh"
  echo '@test "nothing" { :; }' >"$repository/tests/lock/queue.bats"
  bash "$repository/tests/run.sh" >"$T/out" || fail "$(<"$T/out")"
  same "$(<"$T/installed")" 'server test'
  RLOCK_INSTALL=no bash "$repository/tests/run.sh" >"$T/out" || fail "$(<"$T/out")"
  same "$(<"$T/installed")" 'server test'
}
