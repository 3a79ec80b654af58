# Holds: nobody is granted the lock until they are over.

load ../support/helpers
load ../support/scripts

setup() { start_scripts; }

# put ID HOW MS: a hold by the owner ID
put() { call hold "$1" "$2" "$3" "$(owner "$1")"; }

holds() { cli HGET "$META" holds; }

@test "a hold that is repeated is the same hold, and a later one replaces it" {
  local until
  put a for 60000
  outcome held
  until=${REPLY[1]}
  nearly 60000 $((until - $(server_ms)))
  put a for 90000
  same "${REPLY[*]:0:2}" "held $until"
  same "$(holds | wc -l)" 1
  put b until $((until + 1000))
  same "${REPLY[1]} ${REPLY[*]:3}" "$((until + 1000)) $until $(owner a)"
  put b until $((until + 1000))
  same "${REPLY[*]:3}" "$until $(owner a)"
  put a for 60000 # which was on its way for long
  same "${REPLY[*]:0:2}" "held $until"
  same "$(holds | wc -l)" 2
}

@test "a hold for at least so long leaves one alone that lasts longer" {
  local until
  put a least 60000
  outcome held
  until=${REPLY[1]}
  put b least 50000
  replies kept "$until" "$(owner b | sed 's/-b/-a/g')"
  put c least 90000
  outcome held
  same "${REPLY[*]:3}" "$until $(owner a)"
  put c least 90000
  outcome held
  same "$(holds | wc -l)" 2
}

@test "a time that has passed holds nothing, and no hold is longer than 91 days" {
  put a until "$(server_ms)"
  outcome past
  same "$(cli EXISTS "$META" "$MARK")" 0
  put b for 9000000000000
  nearly 7862400000 $((REPLY[1] - $(server_ms)))
}

@test "nobody is granted the lock, until the end hands it to the first waiter; a repeated end is the same" {
  hold a
  listen b
  put ann for 60000
  enqueue b
  outcome hold
  call release a level-a 0 ''
  outcome released
  same "$(cli EXISTS "$LOCK")" 0
  acquire c
  same "${REPLY[0]} ${REPLY[4]}" "hold $(owner ann)"
  put end-1 end 0
  same "${REPLY[0]} ${REPLY[2]}" "ended $(owner ann)"
  same "$(cli HEXISTS "$LOCK" b)" 1
  put end-1 end 0
  outcome ended
  put end-2 end 0
  outcome none
}

@test "an end that is repeated does not end a hold that has begun since then" {
  put ann for 60000
  put end-1 end 0
  put bob for 60000
  put end-1 end 0
  same "${REPLY[0]} ${REPLY[2]}" "ended $(owner ann)"
  acquire c
  same "${REPLY[0]} ${REPLY[4]}" "hold $(owner bob)"
}

@test "a mark is there for as long as the hold, and what is kept of the lock for longer" {
  hold x
  call release x level-x 0 ''
  put a for 7000000000
  nearly 7000000000 "$(cli PTTL "$MARK")"
  between 7000000000 "$(cli PTTL "$META")" 7100000000
  put b end 0
  same "$(cli EXISTS "$MARK")" 0
}

@test "the last sixteen holds are remembered, and who has ended each" {
  local i
  for ((i = 0; i < 17; i++)); do put "id-$i" for 60000; done
  put end-1 end 0
  same "$(holds | wc -l)" 16
  matches "$(holds | head -n 1)" '^id-16 [0-9]+ [0-9]+ [1-9][0-9]+ end-1 owner-end-1 owner-id-16 '
}
