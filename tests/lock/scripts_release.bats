# release.lua and renew.lua.

load ../support/helpers
load ../support/scripts

setup() { start_scripts; }

@test "release: a repetition for a level gets the same answer, and leaves the other levels" {
  hold a
  LEVEL=inner acquire a
  LEVEL=innermost acquire a
  call release a inner 0 ''
  replies kept 2
  call release a inner 0 ''
  replies kept 2
  call release a innermost 0 ''
  replies kept 1
  call release a level-a 3 ''
  replies released
  call release a level-a 3 ''
  replies released
  absent "$LOCK"
  call status
  matches "$(fact last)" '^last [0-9]+ [0-9]+ [0-9]+ 3 '"$(owner a)$"
}

@test "release: a level that was killed lives no longer than its own lease, though others were renewed" {
  hold a
  LEVEL=inner acquire a
  SHIFT=20 call renew a 30000 level-a
  SHIFT=25 call release a level-a 0 ''
  replies kept 1
  nearly 30000 "$(cli PTTL "$LOCK")" # not 50 s
  hold_again
  SHIFT=20 call renew a 30000 level-a
  SHIFT=31 call release a level-a 0 ''
  replies released
  absent "$LOCK"
}

@test "release: a level that renews, or a token that was renewed, keeps the lock when another ends" {
  hold a
  LEVEL=inner acquire a
  SHIFT=20 call renew a 30000 inner
  SHIFT=31 call release a level-a 0 ''
  replies kept 1
  hold_again
  SHIFT=20 call renew a 30000 ''
  SHIFT=31 call release a level-a 0 ''
  replies kept 1
}

hold_again() { # the same two levels, on a server that knows nothing
  cli FLUSHALL >/dev/null
  hold a
  LEVEL=inner acquire a
}

@test "release: if what is left of the lease is shorter, the first waiter is told when it ends" {
  listen b
  hold a
  enqueue b
  LEVEL=inner TTL=1900 HOW=reenter acquire a
  call release a level-a 0 ''
  replies kept 1
  wait_until "$PATIENCE" grep -qx message "$T/ear-b.out"
  between 1 "$(told b)" 1901
}

@test "release: an unknown token, and one whose lease has run out, get the answer lost, and nothing changes" {
  local before
  call release a level-x 0 ''
  replies lost
  hold a
  before=$(dump "$LOCK")
  call release b level-b 0 ''
  replies lost
  call release b '*' - ''
  replies lost
  same "$(dump "$LOCK")" "$before"
}

# How a run ended that has a run inside, which leaves after it.
@test "release: an acquisition ends as the level that made it, not as the last to leave" {
  local outer status how
  for outer in '1 -' '0 timeout' '9 signal:9'; do
    read -r status how <<<"$outer"
    hold "${how}a" once=v42
    LEVEL=inner-$how HOW=reenter acquire "${how}a"
    call release "${how}a" "level-${how}a" "$status" "${how#-}"
    outcome kept
    call release "${how}a" "inner-$how" 0 ''
    replies released
  done
  hold b once=v43
  LEVEL=inner HOW=reenter acquire b
  call release b level-b 0 ''
  call release b inner 1 ''
  same "$(ends)" '1 timeout signal:9 0'
  call status
  same "$(fact success | awk '{print $NF}')" v43
}

@test "release: an acquisition ends as the level that made it even if the one inside dies, or loses the lock" {
  local inner_end
  for inner_end in killed lost; do
    hold "$inner_end" "once=$inner_end"
    LEVEL=inner-$inner_end HOW=reenter acquire "$inner_end"
    call release "$inner_end" "level-$inner_end" 0 ''
    outcome kept
    cli DEL "$LOCK"
    [[ $inner_end == killed ]] || call release "$inner_end" "inner-$inner_end" 143 lost
    call log 10
  done
  same "$(ends)" '0 0'
  call status
  same "$(fact success | awk '{print $NF}') $(fact lost)" 'lost lost 0'
}

@test "release: a level inside that comes too late says nothing of how the acquisition ended" {
  local state
  for state in unnoticed noticed; do
    hold "$state" "once=$state"
    LEVEL=inner-$state HOW=reenter acquire "$state"
    cli DEL "$LOCK"
    [[ $state == unnoticed ]] || call log 10
    call release "$state" "inner-$state" 0 '' 0 1
    replies lost
    call release "$state" "level-$state" 143 lost
    replies lost
  done
  call status
  same "$(ends) $(fact success)" 'lost lost '
  hold a once=v42
  LEVEL=inner HOW=reenter acquire a
  cli DEL "$LOCK"
  call release a inner 143 lost 0 1
  call release a level-a 0 ''
  call status
  same "$(ends) $(fact success | awk '{print $NF}')" 'lost lost 0 v42'
}

@test "renew: a run inside what nobody renews renews for both, until the outer one has been released" {
  hold a
  LEVEL=inner HOW=reenter acquire a
  SHIFT=20 call renew a 30000 inner
  SHIFT=31 call release a inner 0 ''
  replies kept 1
  SHIFT=45 call renew a 30000 level-a
  outcome extended
  call release a level-a - ''
  hold b
  LEVEL=killed HOW=reenter acquire b
  LEVEL=inner HOW=reenter acquire b
  call release b level-b - ''
  call renew b 30000 killed
  SHIFT=20 call renew b 30000 inner
  SHIFT=31 call release b inner 0 ''
  replies released
}

@test "release: an acquisition whose level was killed has died, whatever those inside have done since" {
  hold a kept=1 once=v42
  LEVEL=inner HOW=reenter acquire a
  call renew a 30000 level-a # for the last time
  SHIFT=20 call renew a 30000 inner
  SHIFT=31 call release a inner 0 ''
  replies released
  same "$(ends)" died
  call status
  same "$(fact lost)$(fact success)" 'lost 1'
}

@test "release: before the minimum hold is over the lock cools, and all that ask then wait" {
  hold a hold=20000
  call release a level-a 0 ''
  outcome cooling
  nearly 20000 "${REPLY[1]}"
  nearly 20000 "$(cli PTTL "$LOCK")"
  call release a level-a 0 ''
  outcome cooling
  call renew a 30000 ''
  replies lost
  HOW=reenter acquire a
  replies cancelled
  acquire b
  same "${REPLY[0]} ${REPLY[6]}" "busy $(owner a)"
  same "${REPLY[4]}" 0
  nearly 20000 "${REPLY[5]}"
  call status
  outcome cooling
}

@test "release: the minimum hold outlasts the lease of a holder that crashed" {
  TTL=200 acquire a hold=20000
  nearly 20000 "$(cli PTTL "$LOCK")"
  wait_until "$PATIENCE" acquire_cooling b
}

acquire_cooling() {
  acquire "$1" || return
  [[ ${REPLY[0]} == busy ]] && ((REPLY[5] > 10000))
}

@test "release: a minimum hold that is over delays nobody" {
  hold a hold=50
  sleep 0.1
  call release a level-a 0 ''
  replies released
}

@test "renew: extends a lease, never shortens it, and touches only the lock's own key" {
  TTL=20000 hold a
  cli DEL "$META"
  call renew a 60000 ''
  outcome extended
  nearly 60000 "${REPLY[1]}"
  call renew a 1000 ''
  nearly 60000 "${REPLY[1]}"
  nearly 60000 "$(cli PTTL "$LOCK")"
  call renew b 1000 ''
  replies lost
  same "$(cli KEYS '*')" "$LOCK"
}

@test "renew: the key lives as long as its longest holder" {
  CAPACITY=0 TTL=40000 hold a
  CAPACITY=0 acquire b
  call renew b 20000 ''
  nearly 40000 "$(cli PTTL "$LOCK")"
  call release a level-a 0 ''
  nearly 20000 "$(cli PTTL "$LOCK")"
}
