# Runs the tests of pure functions, an executable that is built beside rlock.

load ../support/helpers

setup() { hermetic; }

@test "the unit tests pass" {
  local unit
  unit=$(dirname "$(realpath "$T/bin/rlock")")/rlock-unit
  [[ -x $unit ]] || skip "no rlock-unit beside rlock"
  "$unit"
}
