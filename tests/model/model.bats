# The protocol by models of it: the queue and the lease in every order of events, the quorum's fence in many.

load ../support/helpers

setup_file() {
  c++ -std=c++20 -O2 -o "$BATS_FILE_TMPDIR/queue_lease" "$BATS_TEST_DIRNAME/queue_lease/queue_lease.cc"
}

setup() { hermetic; }

queue_lease() { "$BATS_FILE_TMPDIR/queue_lease" "$@"; }
quorum_fence() { python3 "$BATS_TEST_DIRNAME/quorum_fence.py" "$@"; }

fails() { # WHAT MODEL OPTION...: with the mutant that the first OPTION names
  run "${@:2}"
  same "$status" 1
  contains "$output" "$1"
}

@test "commands exclude each other, the queue keeps its order, nobody sleeps too long or for ever, with any two faults" {
  run queue_lease 2
  echo "$output"
  same "$status" 0
  contains "$output" 'no wait is longer than'
  contains "$output" 'exclusion, order and wake-ups hold'
}

@test "mutant: a lease that counts from its reply ends after another's has begun" {
  fails 'two commands run at once' queue_lease --credit-at-reply
}

@test "mutant: a lock released before its command has died" {
  fails 'two commands run at once' queue_lease --release-before-reaping
}

@test "mutant: a withdrawal that comes late takes the lock that was asked for with the same token" {
  fails 'two commands run at once' queue_lease --reuse-token
}

@test "mutant: a lock that was handed over, with a lease that counts from when the message was read" {
  fails 'two commands run at once' queue_lease --credit-at-message
}

@test "mutant: when nothing is kept for who is woken, it is passed" {
  fails 'which came before it' queue_lease --wake-without-reservation
}

@test "mutant: who leaves the queue with a lock that it was handed, without a walk, leaves the others asleep" {
  fails 'the lock lies free while' queue_lease --cancel-without-walk
}

@test "mutant: who only sleeps until woken does not see that a holder has died" {
  fails 'the lock lies free while' queue_lease --sleep-until-woken
}

@test "mutant: a lock handed to the dead for good lets others wait for ever" {
  fails 'may wait for ever' queue_lease --hand-over-for-good
}

@test "no fence is used twice, none inverted, none held at once, whatever is lost, late, restarted or forced" {
  quorum_fence 2000
}

@test "mutant: settled by who does not hold any more, a fence is used twice" {
  fails 'which was used' quorum_fence --without-owner-check
}

@test "mutant: with the token of a round that failed, who asks after another gets a smaller fence" {
  fails 'asked after' quorum_fence --reuse-token
}

@test "mutant: where only the first level to renew is put back, the end of an inner run frees the lock" {
  fails 'while' quorum_fence --renew-without-level 600 300
}

@test "mutant: a lock that is used before a majority has agreed on its fence" {
  fails 'asked after' quorum_fence --unsettled 600 100
}

@test "mutant: the smallest of the fences granted is settled" {
  fails 'asked after' quorum_fence --smallest-fence
}

@test "mutant: a run inside takes the largest fence that it hears" {
  fails 'was entered again with' quorum_fence --largest-on-reentry
}

@test "mutant: a lock is taken from who is forced to give it up, before the command is dead" {
  fails 'while' quorum_fence --forced-at-once
}
