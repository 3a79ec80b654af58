# The suite itself.

load ../support/helpers

@test "the tests pass when they are started with ignored signals, a strange umask, language and home" {
  export RLOCK=$T/bin/rlock JOBS=2
  (umask 077 && cd / && HOME=/nowhere LANG=tlh LC_ALL=tlh RLOCK_PREFIX=strange: REDIS_URL=redis://nowhere.invalid \
    PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin env --ignore-signal=HUP,INT,QUIT nohup bash "$BATS_TEST_DIRNAME/../run.sh" run/start) >"$T/out" 2>&1 || fail "$(<"$T/out")"
  matches "$(tail -n 1 "$T/out")" '^[0-9]+ passed, 0 failed'
}
