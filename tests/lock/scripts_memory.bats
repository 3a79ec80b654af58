# What the lock remembers of levels that have ended, so that repeated and late requests get the right answer; and what
# happens when a clock is set.

load ../support/helpers
load ../support/scripts

setup() { start_scripts; }

@test "memory: an acquire that comes after its level was cancelled or released takes nothing" {
  local how
  hold a
  call cancel b level-b
  call release a level-a 0 ''
  for how in once queue reenter; do
    HOW=$how acquire b
    replies cancelled
    HOW=$how acquire a
    replies cancelled
  done
  absent "$LOCK"
  absent "$QUEUE"
}

@test "memory: a level that was given up does not come back while other levels hold on" {
  hold a
  LEVEL=inner HOW=reenter acquire a
  call release a inner 0 ''
  LEVEL=inner HOW=reenter acquire a
  replies cancelled
  counts_levels 1
}

@test "memory: a repeated release gets the same answer, however many levels ended in between" {
  local token
  hold a
  LEVEL=inner HOW=reenter acquire a
  call release a level-a 0 ''
  replies kept 1
  call release a inner 0 ''
  replies released
  for token in b c d; do
    hold $token
    call release $token level-$token 0 ''
  done
  call release a level-a 0 ''
  replies released
  call release a inner 0 ''
  replies released
}

@test "memory: a repeated release of all levels gets the same answer, another one is told that the lock is lost" {
  hold a
  LEVEL=inner HOW=reenter acquire a
  call release a '*0123456789abcdef' - ''
  replies released
  hold b
  call release a '*0123456789abcdef' - ''
  replies released
  call release a '*fedcba9876543210' - ''
  replies lost
  call release a '*' - ''
  replies lost
  call recall a level-a
  replies released
  call recall a inner
  replies released
  call recall b level-b
  replies unknown
  call recall b level-b 17
  replies unknown
  LEVEL=inner HOW=reenter acquire a
  replies lost
  LEVEL=inner acquire a
  replies cancelled
}

@test "memory: a release of all levels tells each of them" {
  listen a inner
  hold a
  LEVEL=level-inner HOW=reenter acquire a
  call release a '*' - ''
  hears a released
  hears inner released
}

@test "memory: a repeated release gets the same answer after any number of other ends" {
  local i digest
  hold a
  call release a level-a 0 ''
  prepare cancel
  digest=$(cli SCRIPT LOAD "$(<"$SCRIPT")")
  for i in {1..70}; do # by one process, since the first is remembered for a minute
    keys_of cancel "b$i" "level-$i"
    echo "EVALSHA $digest ${#KEYS[@]} ${KEYS[*]} b$i level-$i"
  done | cli >/dev/null
  exists "${ENDED}level-70"
  call release a level-a 0 ''
  replies released
  acquire a
  replies cancelled
}

@test "memory: what a release writes into a memory that was lost expires" {
  hold a
  cli DEL "$META"
  call release a level-a 0 ''
  nearly 2592000000 "$(cli PTTL "$META")"
}

@test "memory: what became of a level is forgotten after a minute" {
  hold a
  call release a level-a 0 ''
  nearly 60000 "$(cli PTTL "${ENDED}level-a")"
  call cancel b level-b
  nearly 60000 "$(cli PTTL "${ENDED}level-b")"
  hold c
  call release c '*request' - ''
  nearly 60000 "$(cli PTTL "${ENDED}c")"
  cli DEL "${ENDED}level-a"
  hold a
}

@test "memory: what comes back late after a release that was told that the lock is lost takes nothing" {
  call release a level-a 0 ''
  replies lost
  wait_until "$PATIENCE" grants_in_quorum probe # the server has been up for long enough to vote
  call cancel probe level-probe
  HOW=restore MAX_LEASE=1 acquire a
  same "${REPLY[0]}" cancelled
  call release a level-a 0 ''
  replies lost
}

@test "memory: what is known of a lock outlives a holder of weeks, while others ask for it" {
  hold a
  cli PEXPIRE "$META" 100000 >/dev/null
  acquire b
  between 1 "$(cli PTTL "$META")" 100000 # such a holder is granted the lock every day
  remember_floor $((($(server_ms) - 20 * 86400000) * 1000))
  acquire b
  between 2000000000 "$(cli PTTL "$META")" 2592000000
  cli PEXPIRE "$META" 100000 >/dev/null
  enqueue c
  cli PEXPIRE "$META" 100000 >/dev/null
  enqueue c # as the first waiter does every two seconds
  between 2000000000 "$(cli PTTL "$META")" 2592000000
}

@test "memory: a cancel that comes after the release does not end the minimum hold" {
  hold a hold=20000
  call release a level-a 0 ''
  outcome cooling
  call cancel a level-a
  acquire b
  outcome busy
}

# ---- a renewal and its level

@test "renew tells whether the record knows the level" {
  hold a
  call renew a 30000 level-a
  same "${REPLY[2]}" 1
  call renew a 30000 inner
  same "${REPLY[2]}" 0
  LEVEL=inner HOW=reenter acquire a
  call renew a 30000 inner
  same "${REPLY[2]}" 1
}

# ---- settle

@test "settle: a settled fence may be raised later, but never lowered" {
  MAX_LEASE=1 wait_until "$PATIENCE" grants_in_quorum a
  call settle a 5
  replies settled
  same "$(fence_of a)" 5
  call settle a 9007199254740000
  call settle a 7
  replies settled
  same "$(fence_of a)" 9007199254740000
  same "$(floor)" 9007199254740000
  call settle b 7
  replies lost
}

@test "settle: in a quorum a grant is counted when its fence is settled, so that a round which was lost counts nothing" {
  MAX_LEASE=1 wait_until "$PATIENCE" grants_in_quorum a
  call cancel a level-a
  WAITED=30 MAX_LEASE=1 acquire b # it waited for the network alone
  call settle b 9007199254740000 '' 1
  call settle b 9007199254740000 '' 1
  replies settled
  call status
  same "$(fact acquired) $(fact waited)" 'acquired 1 waited 0'
  call release b level-b 0 ''
  MAX_LEASE=1 acquire c
  call settle c 9007199254740001 '' 2
  call status
  same "$(fact acquired) $(fact waited)" 'acquired 1 waited 1'
}

@test "settle: readers of overlapping majorities do not settle the same fence" {
  local a b
  export CAPACITY=0
  MAX_LEASE=1 wait_until "$PATIENCE" grants_in_quorum a
  a=${REPLY[1]}
  MAX_LEASE=1 acquire b
  b=${REPLY[1]}
  call settle a "$b" '' 1 # the largest that another server has given it
  replies "used $b"
  same "$(fence_of a)" "$a"
  call settle b "$b" '' 1
  replies settled
  call settle a "$((b + 1))" '' 1
  replies settled
  call settle a "$((b + 1))" '' 1 # the reply was lost
  replies settled
  call settle b "$b" '' 0 # on a server that comes back
  replies settled
}

@test "settle: a reader that has settled a fence before, which was refused elsewhere, gets none that another has" {
  local a b token
  export CAPACITY=0
  MAX_LEASE=1 wait_until "$PATIENCE" grants_in_quorum a
  a=${REPLY[1]}
  MAX_LEASE=1 acquire b
  b=${REPLY[1]}
  call settle a "$a" '' 1
  replies settled
  call settle b "$b" '' 1
  replies settled
  # Another server has refused both, and told both the same floor.
  call settle b "$((b + 5))" '' 1
  replies settled
  call settle a "$((b + 5))" '' 1
  replies "used $((b + 5))"
  same "$(fence_of a)" "$a"
  call settle a "$((b + 6))" '' 1
  replies settled
  for token in a b; do call renew "$token" 30000 "level-$token"; done
  same "$(fence_of a) $(fence_of b)" "$((b + 6)) $((b + 5))"
}

@test "settle: re-entry in a quorum is told no fence until one is settled" {
  wait_until "$PATIENCE" grants_in_quorum a
  MAX_LEASE=1 LEVEL=inner HOW=reenter acquire a
  same "${REPLY[*]::2}" 'granted 0'
  call settle a 42
  MAX_LEASE=1 LEVEL=inner HOW=reenter acquire a
  same "${REPLY[*]::2}" 'granted 42'
}

# ---- clocks

@test "memory: whoever asks late what became of its lock is told that it was released" {
  hold a
  call release a '*0123456789abcdef' - ''
  replies released
  cli DEL "${ENDED}a" "${ENDED}level-a" # as after a minute
  call recall a level-a "$FENCE"
  replies released
  call recall a level-a 17
  replies unknown
}

@test "memory: the longest spacing is kept for a day more" {
  hold a per=2592000000
  nearly 2678400000 "$(cli PTTL "$META")"
}

@test "memory: a slot of the calendar is kept for two months" {
  hold a once=month:2026-11
  nearly 5356800000 "$(cli PTTL "$META")"
}

@test "clock: after it was set back by an hour nobody holds longer than asked for, and a release frees the lock" {
  SHIFT=3600 hold a
  call status
  same "$(fact capacity)" 'capacity 1'
  acquire b
  same "${REPLY[0]} ${REPLY[3]}" 'busy 0' # the time held is never negative
  nearly 30000 "${REPLY[4]}"
  nearly 30000 "$(cli PTTL "$LOCK")" # whoever looked has written it
  call release a level-a 0 ''
  replies released
  absent "$LOCK"
  call status
  matches "$(fact last)" '^last [0-9]+ [0-9]+ [0-9]+ 0 '
}

@test "clock: after it was set back by an hour every record of a crowd is written anew" {
  local TTL=300000 # longer than a busy machine needs for so many words
  crowd $((BEGAN + 3600000))
  CAPACITY=0 hold b
  same "$(holders)" 9001
  nearly "$TTL" "$(cli PTTL "$LOCK")"
  call force now me $(seq 9000)
  same "${#REPLY[@]}" 9002
  same "$(holders)" 1
}

@test "memory: it is kept for as long as --once needs it, even after a run that was lost" {
  local i
  for i in a b c; do
    hold $i once=v42
    cli DEL "$LOCK"
    call release $i level-$i - ''
    replies lost
    nearly 34560000000 "$(cli PTTL "$META")"
  done
}

@test "clock: after it was set back by an hour, a success before that and another ID do not count as the last one" {
  SHIFT=3600 hold a once=v1
  SHIFT=3600 call release a level-a 0 ''
  hold b once=v2
  call release b level-b 0 ''
  acquire c once=v1
  outcome granted
}

@test "clock: after it was set back by an hour a minimum hold lasts no longer than asked for" {
  SHIFT=3600 acquire a hold=20000
  call release a level-a 0 ''
  outcome cooling
  nearly 20000 "${REPLY[1]}"
}

@test "clock: a renewal for longer than the first lease lasts its full length" {
  hold a
  call renew a 3600000 ''
  call status
  nearly 3600000 "$(($(fact holder | cut -d ' ' -f 2) - REPLY[1]))"
}

# ---- unreadable records

@test "a record of another version holds until its key expires, is said to be one, and can be forced" {
  local text before
  for text in garbage '' '1 2 3' "$(printf '9%.0s' {1..400}) 0 1 0 1 l o" \
    "9999999999999 0 11 0 5 level-a me host user 7 sleep%2020  ttl=30000"; do
    cli DEL "$LOCK"
    cli HSET "$LOCK" rlock 1 a "$text"
    cli PEXPIRE "$LOCK" 60000
    before=$(dump "$LOCK")
    acquire b
    same "${REPLY[0]} ${REPLY[6]%% *}" 'busy another%20version%20of%20rlock'
    call status
    outcome held
    contains "$(fact holder)" another%20version%20of%20rlock
    for refused in 'renew a 30000 level-a' 'release a level-a 0 ' 'settle a 7'; do
      # shellcheck disable=SC2086 # a verb and its arguments
      refuses $refused
      contains "${REPLY[*]}" 'held by another version of rlock'
    done
    same "$(dump "$LOCK")" "$before"
    call force now me
    matches "${REPLY[1]}" '^0 held [0-9]+ '
    call force now me 0
    contains "${REPLY[1]}" ' removed '
    absent "$LOCK"
  done
}

@test "a memory of another version, or a fence that cannot be raised, refuses grants and stays as it is" {
  local state
  for state in '9007199254740991 5 0 0 0' '9007199254740992 5 0 0 0' "$(printf '9%.0s' {1..400}) 5 0 0 0" garbage '' ; do
    cli HSET "$META" state "$state"
    refuses acquire a level-a 1 30000 queue '' 0 "$(owner a)" 0
    contains "${REPLY[*]}" "look at the field state of $META"
    absent "$LOCK"
    absent "$QUEUE"
    same "$(cli HGET "$META" state)" "$state"
    call status
    outcome free
  done
}

@test "waiters are not handed a lock whose fence cannot be raised" {
  listen b
  hold a
  enqueue b
  remember_floor 9007199254740991
  call release a level-a 0 ''
  replies released
  same "$(order)" b
}

refuses() { # VERB ARG...: sets REPLY to the error
  keys_of "$@"
  prepare "$1"
  mapfile -t REPLY < <(cli --eval "$SCRIPT" "${KEYS[@]}" , "${@:2}" 2>&1)
  contains "${REPLY[0]}" RLOCK
}
