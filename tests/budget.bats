# What a run may cost, in counts that no busy neighbour moves. (Times: tests/bench.)

load helpers

setup() {
  hermetic
  [[ $(ldd "$T/bin/rlock") != *lib@(a|t|ub)san* ]] || skip "a sanitizer's build is not judged by its size"
  start_redis
}

@test "an uncontended run makes two script calls" {
  try run --key job -- true # the server learns the scripts
  cli CONFIG RESETSTAT
  try run --key job -- true
  exits 0
  matches "$(cli INFO commandstats)" 'cmdstat_evalsha:calls=2,'
  [[ $(cli INFO commandstats) != *cmdstat_eval:* ]]
}

@test "OpenSSL is not loaded where TLS is not used" {
  [[ $(ldd "$T/bin/rlock") != *lib@(ssl|crypto)* ]] || fail "$(ldd "$T/bin/rlock")"
  hold job
  [[ $(cat "/proc/$HOLDER/maps") != *lib@(ssl|crypto)* ]]
}

@test "keeper and guard together have less than 4 MB of memory of their own" {
  local guard kb
  hold job
  guard=$(tr -d ' ' <"/proc/$HOLDER/task/$HOLDER/children")
  kb=$(awk '/^Pss:/ {sum += $2} END {print sum}' "/proc/$HOLDER/smaps_rollup" "/proc/$guard/smaps_rollup")
  ((kb > 0 && kb < 4096)) || fail "$kb kB"
}
