# force.lua: which holders it lists, marks or removes, and what a marked record is refused.

load ../support/helpers
load ../support/scripts

setup() { start_scripts; }

@test "force: without fences it lists the holders, and touches none" {
  local before
  call force evict me
  replies free
  hold a kept=1
  before=$(dump "$LOCK")
  call force evict me
  same "${REPLY[0]} ${#REPLY[@]}" 'holders 2'
  matches "${REPLY[1]}" "^$FENCE held [0-9]+ 1 $(owner a)\$"
  same "$(dump "$LOCK")" "$before"
}

@test "force: a holder with a keeper is marked and told, keeps its seat, and is not renewed any more" {
  local end
  listen a
  hold a kept=1
  call force evict me%20pid%207 "$FENCE"
  matches "${REPLY[1]}" "^$FENCE marked [0-9]+ 1 $(owner a)\$"
  hears a evicted
  end=$(field_of a 1)
  call renew a 30000 level-a
  replies evicted forced me%20pid%207
  LEVEL=inner HOW=reenter acquire a
  replies evicted forced me%20pid%207
  same "$(field_of a 1)" "$end"
  call release a level-a 143 evicted,me%20pid%207
  replies released
  absent "$LOCK"
  same "$(ends)" evicted,me%20pid%207
}

@test "force: all levels of a holder are told" {
  listen a inner
  hold a kept=1
  LEVEL=level-inner HOW=reenter acquire a
  call force evict me "$FENCE"
  hears a evicted
  hears inner evicted
}

@test "force: a repetition tells the holder again, since it may not have heard, and counts once" {
  listen a
  hold a kept=1
  call force evict me "$FENCE"
  call force evict me "$FENCE"
  matches "${REPLY[1]}" "^$FENCE marked "
  cli PUBLISH "$(channel_of a)" end >/dev/null
  wait_until "$PATIENCE" grep -qx end "$T/ear-a.out"
  same "$(told a)" 'evicted evicted end'
  call status
  same "$(fact evicted)" 'evicted 1'
}

@test "force: a repetition with the same fences touches no other holder, and counts once" {
  local first
  listen b
  hold a
  first=$FENCE
  enqueue b kept=1
  call force evict me "$first"
  matches "${REPLY[1]}" "^$first removed [0-9]+ 0 $(owner a)\$" # nobody renews it
  is_handed b
  call force evict me "$first"
  same "${#REPLY[@]} $(cut -d ' ' -f 2 <<<"${REPLY[1]}")" '2 held'
  call force now me "$first"
  same "$(cut -d ' ' -f 2 <<<"${REPLY[1]}")" held
  call status
  same "$(fact evicted)" 'evicted 1'
}

@test "force now: a holder with a keeper is told, or its command would run on until the next renewal" {
  listen a
  hold a kept=1
  call force now me "$FENCE"
  absent "$LOCK"
  hears a evicted
}

@test "force: a holder that is marked and then removed counts once" {
  hold a kept=1
  call force evict me "$FENCE"
  call force evict me "$FENCE"
  call force now me "$FENCE"
  absent "$LOCK"
  call status
  same "$(fact evicted)" 'evicted 1'
  same "$(ends)" evicted,me
}

@test "force: now removes every holder that it names, with or without a keeper, and cooling ones too" {
  local token fences=()
  for token in a b c; do
    CAPACITY=0 hold $token kept=1 hold=20000
    fences+=("$FENCE")
  done
  call release b level-b 0 ''
  outcome cooling
  call force now me "${fences[@]}"
  same "$(printf '%s\n' "${REPLY[@]:1}" | cut -d ' ' -f 2 | xargs)" 'removed removed removed'
  absent "$LOCK"
  call renew a 30000 level-a
  replies lost
  call recall a level-a "${fences[0]}"
  replies evicted forced me
  call recall b level-b "${fences[1]}"
  replies released
  same "$(ends)" '0 evicted,me evicted,me'
  call status
  same "$(fact evicted)" 'evicted 2' # the one that cooled had given it up already
}

@test "force: whoever has died before is recorded so, and is not evicted" {
  local how ms
  for how in evict now; do
    cli FLUSHALL >/dev/null
    SHIFT=-60 acquire a kept=1 hold=80000
    FENCE=${REPLY[1]}
    ms=$(cut -d ' ' -f 1 <<<"$(field_of a 1)")
    call force $how me "$FENCE"
    matches "${REPLY[1]}" "^$FENCE removed 0 1 $(owner a)\$"
    same "$(history | cut -d ' ' -f 3,6)" "$ms died"
    call status
    same "$(fact evicted) $(fact lost)" 'evicted 0 lost 1'
    absent "$LOCK"
  done
  cli FLUSHALL >/dev/null
  SHIFT=-60 TTL=10000 acquire a backoff=100000-100000
  call force evict me # whoever asks who holds the lock sees how it cools
  matches "${REPLY[1]}" '^[0-9]+ cooling 0 0 '
  same "$(ends)" died
}

@test "force: what nobody renews is taken away at once only if no run inside it lives" {
  listen a inner
  hold a
  LEVEL=level-inner HOW=reenter acquire a kept=1
  call renew a 30000 level-inner
  call force evict me "$FENCE"
  matches "${REPLY[1]}" "^$FENCE marked "
  hears inner evicted
  call renew a 30000 level-inner
  replies evicted forced me
  call release a level-inner 143 evicted,me
  replies released
  absent "$LOCK"
  same "$(ends)" evicted,me
  TTL=90000 hold b
  LEVEL=level-dead HOW=reenter acquire b kept=1
  SHIFT=31 call force evict me "$FENCE" # the run inside was killed
  matches "${REPLY[1]}" "^$FENCE removed "
  hold c
  LEVEL=level-left HOW=reenter acquire c kept=1
  call release c level-c 0 ''
  call force evict me "$FENCE"
  matches "${REPLY[1]}" "^$FENCE marked "
  call status
  same "$(fact evicted)" 'evicted 3'
}

@test "force: a run that has ended well is not said to be evicted when the run inside it is" {
  hold a kept=1 once=v1
  LEVEL=level-left HOW=reenter acquire a
  call release a level-a 0 ''
  call force now me "$FENCE"
  matches "${REPLY[1]}" "^$FENCE removed "
  same "$(ends)" 0
  call status
  same "$(fact evicted) $(fact failed)" 'evicted 1 failed 0'
  acquire b once=v1
  outcome 'done'
}

@test "force: another program's key is deleted only when it is named" {
  listen b
  cli SET "$LOCK" token
  enqueue b
  call force now me 17
  replies foreign string token -1
  same "$(cli GET "$LOCK")" token
  remember_floor 9007199254740000 5 >/dev/null
  call force evict me foreign
  same "${REPLY[0]} ${REPLY[1]}" 'foreign string'
  is_handed b
  same "$(cli HGET "$META" state)" '9007199254740001 0 6 0 0 0' # what the lock remembers goes on
}
