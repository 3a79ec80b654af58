# Models of the protocol: the queue and the lease in every order of events, the quorum's fence in many random orders.

load ../support/helpers

setup_file() {
  c++ -std=c++20 -O2 -o "$BATS_FILE_TMPDIR/queue_lease" "$BATS_TEST_DIRNAME/queue_lease/queue_lease.cc"
}

setup() { hermetic; }

queue_lease() { "$BATS_FILE_TMPDIR/queue_lease" "$@"; }
quorum_fence() { python3 "$BATS_TEST_DIRNAME/quorum_fence.py" "$@"; }

fails() { # WHAT MODEL OPTION...: the model finds WHAT with the mutant that the first OPTION names
  run "${@:2}"
  same "$status" 1
  contains "$output" "$1"
}

@test "with any fault commands exclude each other, the queue keeps its order, and nobody sleeps too long" {
  run queue_lease 1 # the nightly run allows two
  echo "$output"
  same "$status" 0
  contains "$output" 'no wait is longer than'
  contains "$output" 'exclusion, order and wake-ups hold'
}

@test "mutant: a lease that counts from its reply ends after the next one has begun" {
  fails 'two commands run at once' queue_lease --credit-at-reply
}

@test "mutant: a lock is released before its command has died" {
  fails 'two commands run at once' queue_lease --release-before-reaping
}

@test "mutant: a lock is taken from a holder that was evicted before its command is dead" {
  fails 'two commands run at once' queue_lease --evict-at-once
}

@test "mutant: a holder that was evicted, and did not hear of it, is renewed" {
  fails 'is renewed though it was evicted' queue_lease --renew-the-evicted
}

@test "mutant: a late cancel takes away the lock that was asked for again with the same token" {
  fails 'two commands run at once' queue_lease --reuse-token
}

@test "mutant: the lease of a lock that was handed over counts from when the message was read" {
  fails 'two commands run at once' queue_lease --credit-at-message
}

@test "mutant: a waiter that is woken without a reserved seat is passed by others" {
  fails 'which came before it' queue_lease --wake-without-reservation
}

@test "mutant: a cancel that does not serve the next waiter leaves the others asleep" {
  fails 'the lock lies free while' queue_lease --cancel-without-walk
}

@test "mutant: a waiter that sleeps until it is woken does not see that a holder has died" {
  fails 'the lock lies free while' queue_lease --sleep-until-woken
}

@test "mutant: a lock that is handed to a dead waiter for good lets the others wait for ever" {
  fails 'may wait for ever' queue_lease --hand-over-for-good
}

@test "no fence is used twice or out of order, and no two hold at once, whatever is lost, late, restarted or forced" {
  quorum_fence 2000
}

@test "mutant: a fence is used twice if a token may settle it that does not hold any more" {
  fails 'which was used' quorum_fence --without-owner-check 100 212
}

@test "mutant: a round that reuses the token of a failed one gets a smaller fence than an earlier holder" {
  fails 'asked after' quorum_fence --reuse-token 100 900
}

@test "mutant: a server that may have missed the fence is not told it again" {
  fails 'was entered again with' quorum_fence --settle-once 300 1400
}

@test "mutant: a lock is used before a majority has settled its fence" {
  fails 'asked after' quorum_fence --unsettled 600 100
}

@test "mutant: the smallest of the granted fences is settled" {
  fails 'asked after' quorum_fence --smallest-fence
}

@test "mutant: a nested run takes the largest fence that it hears" {
  fails 'was entered again with' quorum_fence --largest-on-reentry
}

@test "mutant: a lock is taken from a forced holder before its command is dead" {
  fails 'while' quorum_fence --forced-at-once
}
