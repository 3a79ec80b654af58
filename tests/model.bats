# The quorum's fence, by a model of it.

load helpers

setup() { hermetic; }

model() { python3 "$BATS_TEST_DIRNAME/model/quorum_fence.py" "$@"; }

@test "no fence is used twice, none inverted, none held at once, whatever is lost, late or restarted" {
  model 2000
}

@test "the same model without the owner check fails" {
  run model --without-owner-check 2000
  same "$status" 1
  contains "$output" "which was used"
}
