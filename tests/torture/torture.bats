# tests/torture/run.sh runs the torture itself; these tests find what would go stale unnoticed.

load ../support/helpers

@test "the patches of every broken build that the torture must catch fit these sources" {
  local mutant
  for mutant in "$BATS_TEST_DIRNAME"/mutants/*.patch; do
    patch --dry-run --quiet --strip 1 --directory "$BATS_TEST_DIRNAME/../.." <"$mutant" || fail "$mutant does not fit"
  done
}

@test "every bug that the tests are to catch can be planted in these sources" {
  python3 "$BATS_TEST_DIRNAME/../mutants/plant.py" --fit
}
