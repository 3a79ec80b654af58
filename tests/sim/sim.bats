# The simulator, for a few seconds; tests/sim/run.sh does more. It is built only where its Lua is installed.

load ../support/helpers

setup() {
  hermetic
  sim=$(dirname "$(realpath "$T/bin/rlock")")/rlock-sim
  [[ -x $sim ]] || skip "this machine has built no rlock-sim; sim/run.sh does"
}

@test "the model of Redis answers as a real server does" {
  start_redis --hash-max-listpack-value 1000000 --hash-max-listpack-entries 1000000
  "$sim" --compare "$REDIS_SOCK" --seed "$RANDOM" --commands 2000
}

@test "what once went wrong in simulated time no longer does, nor does anything else" {
  "$sim" --seeds "$BATS_TEST_DIRNAME/seeds" --worlds 10 --seed 1
}

@test "a seed always tells the same story" {
  "$sim" --story --seed 2 >"$T/first"
  "$sim" --story --seed 2 | cmp - "$T/first"
}
