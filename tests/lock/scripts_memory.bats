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
  LEVEL=inner HOW=reenter acquire a
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

@test "memory: release markers and ended levels are bounded in number and time, at nobody's cost" {
  local i
  hold a
  {
    printf 'HSET %s released "' "$META"
    for i in {1..1600}; do printf 'token%s:99999999999999 ' "$i"; done
    echo 'old:17"'
  } | cli >/dev/null
  call release a '*' - ''
  same "$(cli HGET "$META" released | wc -w)" 64
  matches "$(cli HGET "$META" released)" '^a:'
  for i in {100..180}; do call cancel "token-$i" "0123456789abc$i"; done
  same "$(cli HGET "$META" gone | wc -c)" $((64 * 33 + 1))
  acquire b
  is_granted b
}

@test "memory: levels that ended more than a minute ago are forgotten" {
  SHIFT=-61 call cancel a 0123456789abcdef
  LEVEL=0123456789abcdef acquire a
  is_granted a
  call cancel b fedcba9876543210
  matches "$(cli HGET "$META" gone)" '^fedcba9876543210 c [0-9]{13} $'
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
  same "$(field_of a 3)" 5
  call settle a 9007199254740000
  call settle a 7
  replies settled
  same "$(field_of a 3)" 9007199254740000
  same "$(cli HGET "$META" floor)" 9007199254740000
  call settle b 7
  replies lost
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
  same "$(field_of a 3)" "$a"
  call settle b "$b" '' 1
  replies settled
  call settle a "$((b + 1))" '' 1
  replies settled
  call settle a "$((b + 1))" '' 1 # the reply was lost
  replies settled
  call settle b "$b" '' 0 # on a server that comes back
  replies settled
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
  matches "$(fact last)" '^last [0-9]+ [0-9]+ 0 0 '
}

@test "clock: after it was set back by an hour every record of a crowd is written anew" {
  crowd $((BEGAN + 3600000))
  CAPACITY=0 acquire b
  outcome granted
  same "$(cli HLEN "$LOCK")" 9002
  nearly 30000 "$(cli PTTL "$LOCK")"
  call force now me $(seq 9000)
  same "${#REPLY[@]}" 9002
  same "$(cli HLEN "$LOCK")" 2
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

@test "clock: a record of 0.1.0 is believed, and a renewal by 0.2.0 does not shorten it" {
  local end
  end=$((BEGAN + 900000))
  cli HSET "$LOCK" rlock 1 a "$end 0 11 0 5 level-a me host user 7 sleep%2020 "
  call renew a 30000 level-a
  nearly 900000 "${REPLY[1]}"
  call renew a 30000 level-a
  nearly 900000 "${REPLY[1]}"
}

# ---- unreadable records

@test "an unreadable record holds until its key expires, does not disturb status, and can be forced" {
  local text
  for text in garbage '' '1 2 3' "$(printf '9%.0s' {1..400}) 0 1 0 1 l o"; do
    cli DEL "$LOCK"
    cli HSET "$LOCK" rlock 1 a "$text"
    cli PEXPIRE "$LOCK" 60000
    acquire b
    outcome busy
    call status
    outcome held
    call force now me
    matches "${REPLY[1]}" '^0 held [0-9]+ '
    call force now me 0
    contains "${REPLY[1]}" ' removed '
    absent "$LOCK"
  done
}
