# Takers that leave without the lock are counted.

load ../support/helpers
load ../support/scripts

setup() { start_scripts; }

counts() { same "$(cli HGET "$META" skipped | xargs -n 1 | grep -v ^last= | xargs)" "$*"; } # REASON=COUNT...

@test "each reason is counted, and the last is told with its time and who it was" {
  hold a once=v1
  acquire b
  acquire b
  counts held=2
  HOW=queue acquire c max-waiting=0
  counts held=2 full=1
  enqueue d
  call cancel d level-d d "$(owner d)"
  counts held=2 full=1 timed_out=1
  WAITED=9 enqueue e latest=1
  WAITED=5 enqueue f latest=1
  HOW=queue WAITED=10 acquire e latest=1
  counts held=2 full=1 timed_out=1 superseded=1
  call cancel f level-f
  call release a level-a 0 ''
  acquire g once=v1
  outcome "done"
  counts held=2 full=1 timed_out=1 superseded=1 done=1
  hold h once=v2
  call release h level-h 3 ''
  acquire i once=v2 attempts=1
  counts held=2 full=1 timed_out=1 superseded=1 done=1 attempts=1
  matches "$(cli HGET "$META" skipped)" ' last=[0-9]+,attempts,owner-i,host '
  between "$BEGAN" "$(cli HGET "$META" skipped | sed 's/.*last=\([0-9]*\),.*/\1/')" "$(server_ms)"
}

@test "a holder for which a server of a quorum has no room yet does not count as one that was turned away" {
  hold a
  wait_until "$PATIENCE" has_no_room_for b
  same "$(cli HGET "$META" skipped)" ''
}

has_no_room_for() { # TOKEN: says a server that has been up for long enough to vote
  HOW=restore MAX_LEASE=1 acquire "$1" || return
  [[ ${REPLY[0]} == lost ]]
}

@test "a lock that was never used remembers no skip" {
  cli SET "$LOCK" foreign >/dev/null
  acquire a
  outcome foreign
  same "$(cli EXISTS "$META")" 0
}

@test "a cancel that is repeated counts once, and one of a taker that does not give up counts nothing" {
  hold a
  enqueue b
  call cancel b level-b b "$(owner b)"
  call cancel b level-b b "$(owner b)"
  enqueue c
  call cancel c level-c
  counts timed_out=1
}

@test "a wait that is over counts although a round of a quorum has cancelled its level before" {
  hold a
  enqueue b
  call cancel b level-b ''
  call cancel b level-b b "$(owner b)"
  call cancel b level-b b "$(owner b)"
  counts timed_out=1
  call release a level-a 0 ''
  call cancel a level-a a "$(owner a)"
  counts timed_out=1
}
