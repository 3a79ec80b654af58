# The torture itself runs by tests/torture/run.sh; here is what would go stale unseen.

load ../support/helpers

@test "every broken build that the torture is to catch can be made of these sources" {
  local mutant
  for mutant in "$BATS_TEST_DIRNAME"/mutants/*.patch; do
    patch --dry-run --quiet --strip 1 --directory "$BATS_TEST_DIRNAME/../.." <"$mutant" || fail "$mutant does not fit"
  done
}

@test "every bug that the tests are to catch can be planted in these sources" {
  python3 "$BATS_TEST_DIRNAME/../mutants/plant.py" --fit
}
