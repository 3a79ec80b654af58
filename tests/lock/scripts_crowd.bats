# Shared and slotted locks with many holders: the scripts look at few of them, and miss none.

load ../support/helpers
load ../support/scripts

# Twenty holders take a busy machine half a minute, so their leases are longer than that.
setup() {
  start_scripts
  TTL=300000
}

fill() { # COUNT [CAPACITY]: as many holders as make a crowd, h1 and so on
  local i
  for ((i = 1; i <= $1; i++)); do CAPACITY=${2:-0} hold "h$i"; done
  same "$(holders) $(cli ZCARD "$SEATS")" "$1 $1"
}

# Sets SPENT to what Redis spent on 20 takers that come and go, and on as many that find the lock taken, in us.
come_and_go() { # NAME [CAPACITY]
  local i
  cli CONFIG RESETSTAT >/dev/null
  for i in {1..20}; do
    CAPACITY=${2:-0} acquire "$1$i"
    outcome granted
    acquire w
    outcome busy
    call release "$1$i" "level-$1$i" 0 ''
    outcome released
  done
  SPENT=$(cli INFO commandstats | sed -nE 's/^cmdstat_eval:.*usec=([0-9]+),.*/\1/p')
}

@test "crowd: coming, going and being refused cost no more among thousands of readers than among twenty" {
  local few
  crowd $((BEGAN + TTL)) 20
  come_and_go few
  few=$SPENT
  cli DEL "$LOCK"
  crowd $((BEGAN + TTL))
  CAPACITY=0 acquire first # which finds out who they are
  come_and_go many
  ((SPENT < 4 * few)) || fail "$few us became $SPENT us"
}

@test "crowd: coming, going and being refused cost no more among thousands of slots than among twenty" {
  local few
  CAPACITY=9100 crowd $((BEGAN + TTL)) 20
  come_and_go few 9100
  few=$SPENT
  cli DEL "$LOCK"
  CAPACITY=9100 crowd $((BEGAN + TTL))
  CAPACITY=9100 acquire first
  same "${REPLY[2]}" 9000
  come_and_go many 9100
  ((SPENT < 4 * few)) || fail "$few us became $SPENT us"
}

@test "crowd: none has seats while it is small, and a crowd that has left leaves none" {
  local i
  fill 17
  nearly 86400000 "$(cli PTTL "$SEATS")"
  for i in {1..17}; do call release "h$i" "level-h$i" 0 ''; done
  absent "$LOCK"
  absent "$SEATS"
  for i in a b c; do CAPACITY=0 acquire $i; done
  absent "$SEATS"
  same "$(cli HLEN "$LOCK")" 4
}

@test "crowd: the slot that was left is the next to be given, and the lowest of several" {
  fill 20 25
  CAPACITY=25 acquire i
  same "${REPLY[2]}" 20
  call release h13 level-h13 0 ''
  call release h7 level-h7 0 ''
  CAPACITY=25 acquire j
  same "${REPLY[2]}" 6
  CAPACITY=25 acquire k
  same "${REPLY[2]}" 12
  CAPACITY=25 acquire l
  same "${REPLY[2]}" 21
}

@test "crowd: the slots of those who come after a crowd of readers begin at 0" {
  fill 20
  CAPACITY=2 SHIFT=301 acquire i
  same "${REPLY[0]} ${REPLY[2]}" 'granted 0'
  CAPACITY=2 SHIFT=301 acquire j
  same "${REPLY[0]} ${REPLY[2]}" 'granted 1'
}

@test "crowd: a holder that has died is found, recorded once, and its slot given to the next" {
  fill 20 20
  CAPACITY=20 acquire i
  outcome busy
  expire h3
  CAPACITY=20 acquire i
  same "${REPLY[0]} ${REPLY[2]}" 'granted 2'
  same "$(holders) $(cli ZCARD "$SEATS")" '20 20'
  CAPACITY=20 acquire j
  outcome busy
  call log 10
  same "$(ends)" died
}

# As if its lease, which nobody has renewed, had ended a moment ago.
expire() { # TOKEN
  local past=$(($(server_ms) - 1))
  cli HSET "$LOCK" "$1" "$(cli HGET "$LOCK" "$1" | sed -E "s/^[0-9]+/$past/")" >/dev/null
  cli ZADD "$SEATS" $past "$1" >/dev/null
}

@test "crowd: whoever is refused by the dead alone takes their place, however many they are" {
  crowd $((BEGAN + 60000))
  CAPACITY=0 SHIFT=1 acquire a
  outcome granted
  SHIFT=120 acquire b # a thousand of them are looked at
  outcome busy
  same "${REPLY[1]} ${REPLY[8]}" '1 0'
  same "$(holders)" 8001
  for _ in {1..9}; do SHIFT=120 acquire b; done
  is_granted b
  same "$(holders)" 1
  absent "$SEATS"
}

@test "crowd: seats that lag behind the leases are caught up with, and nobody loses one" {
  local i
  fill 20 20
  for i in {1..20}; do call renew "h$i" 600000 "level-h$i"; done
  CAPACITY=20 SHIFT=301 acquire i
  outcome busy
  nearly 299000 "${REPLY[4]}"
  for i in {1..20}; do between $((BEGAN + 600000)) "$(cli ZSCORE "$SEATS" "h$i")" "$(field_of "h$i" 1)"; done
  CAPACITY=20 SHIFT=601 acquire i
  outcome granted
}

@test "crowd: seats that are lost, or are not those of the holders, are made anew" {
  fill 20 20
  cli DEL "$SEATS"
  CAPACITY=20 acquire i
  outcome busy
  same "$(cli ZCARD "$SEATS")" 20
  cli ZREM "$SEATS" h3
  cli ZADD "$SEATS" 1 stranger
  cli HDEL "$LOCK" slots
  call release h5 level-h5 0 ''
  same "$(cli ZCARD "$SEATS") $(cli ZSCORE "$SEATS" stranger)" '19 '
  CAPACITY=20 acquire i
  same "${REPLY[2]}" 4
}

@test "crowd: after the clock was set back nobody holds longer than asked for, though seats say so" {
  local TTL=30000
  SHIFT=3600 fill 20
  CAPACITY=0 acquire i
  outcome granted
  are_bounded h{1..20}
  nearly 30000 "$(cli PTTL "$LOCK")"
  same "$(cli ZCARD "$SEATS")" 21
}

are_bounded() { # TOKEN...: they hold for no longer than half a minute from now
  local now ends i
  now=$(server_ms)
  mapfile -t ends < <(cli HMGET "$LOCK" "$@" | cut -d ' ' -f 1)
  same "${#ends[@]}" $#
  for i in "${ends[@]}"; do between $((now + 1)) "$i" $((now + 30000)); done
}

@test "crowd: a renewal after the clock was set back does not hide that from the others" {
  local i TTL=30000
  TTL=7200000 CAPACITY=0 hold long
  for i in {1..20}; do SHIFT=3600 CAPACITY=0 hold "h$i"; done
  call renew long 7200000 level-long # a lease that is not too long
  outcome extended
  CAPACITY=0 acquire i
  outcome granted
  are_bounded h{1..20}
}

@test "crowd: a record of another version counts as a holder as long as the key lives" {
  local i
  fill 18
  cli HSET "$LOCK" alien 'other words'
  for i in {1..18}; do call release "h$i" "level-h$i" 0 ''; done
  same "$(cli HGET "$LOCK" alien)" 'other words'
  acquire w
  same "${REPLY[0]} ${REPLY[6]%% *}" 'busy another%20version%20of%20rlock'
}

@test "crowd: after a failure with --backoff nobody gets in until it has cooled, whichever records were read before" {
  local token
  fill 20 30
  CAPACITY=30 hold failing backoff=60000-60000
  call release failing level-failing 3 ''
  outcome cooling
  absent "$SEATS"
  call release h5 level-h5 0 ''
  for token in i j; do
    CAPACITY=30 acquire $token
    outcome busy
    nearly 60000 "${REPLY[5]}"
  done
  CAPACITY=30 SHIFT=61 acquire i
  same "${REPLY[0]} ${REPLY[2]}" 'granted 4'
}

@test "crowd: the death of a run with --backoff bars a crowd too, and what it left is no seat of another" {
  local i
  CAPACITY=30 hold dying backoff=60000-60000
  for i in {1..20}; do CAPACITY=30 hold "h$i"; done
  same "$(cli ZCARD "$SEATS")" 21
  expire dying
  CAPACITY=30 acquire i
  outcome busy
  same "${REPLY[6]##* }" 1,died
  absent "$SEATS"
  cli HDEL "$LOCK" dying
  CAPACITY=30 acquire i
  same "${REPLY[2]}" 0
  same "$(holders) $(cli ZCARD "$SEATS")" '21 21'
}
