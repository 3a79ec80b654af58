# status.lua, keys of other programs, and a full memory.

load ../support/helpers
load ../support/scripts

setup() { start_scripts; }

@test "status: it tells the mode, who holds and who waits, and writes nothing" {
  local before
  call status
  same "${REPLY[0]} ${#REPLY[@]}" 'free 3'
  absent "$META"
  listen b
  hold a
  LEVEL=inner acquire a
  CAPACITY=0 enqueue b
  before=$(cli KEYS '*' | sort; dump "$LOCK"; dump "$META")
  call status
  same "${REPLY[0]} ${REPLY[2]}" 'held 1'
  same "$(fact capacity)" 'capacity 1'
  matches "$(fact holder)" '^holder [0-9]+ [0-9]+ [0-9]+ 0 [0-9]+ 2 '"$(owner a) kept=1\$" # by the inner one
  same "$(fact waiter)" "waiter 0 ${TICKETS[b]} $(owner b)"
  same "$(fact last)" '' # none has ended yet
  same "$(fact acquired)" 'acquired 1'
  same "$(cli KEYS '*' | sort; dump "$LOCK"; dump "$META")" "$before"
}

@test "status: a waiter that has taken the place of one with --first waits since then, too" {
  hold a
  enqueue b latest=1 first=1
  enqueue c latest=1
  same "$(order)" c
  call status
  between 1 $(($(server_ms) - $(fact waiter | cut -d ' ' -f 3) / 1000)) 60000
}

foreign_keys() { # runs `$@` on keys of each type in turn
  local make
  for make in 'SET _ token' 'SET _ token PX 90000' 'RPUSH _ a b' 'SADD _ a b' 'ZADD _ 1 a' 'HSET _ 4d9e:1 2' \
    'HSET _ rlock other'; do
    cli FLUSHALL >/dev/null
    # shellcheck disable=SC2086 # a command and its arguments
    cli ${make//_/$LOCK} >/dev/null
    echo "with $make:" # shown where it fails
    "$@"
  done
}

is_respected() {
  local before
  before=$(dump "$LOCK")
  acquire a
  outcome foreign
  same "${REPLY[3]}" "$(cli TYPE "$LOCK")"
  same "${REPLY[4]}" "$(cli GET "$LOCK" 2>&1 | grep -v WRONGTYPE || true)"
  between "$(cli PTTL "$LOCK")" "${REPLY[5]}" 90000
  enqueue b
  outcome foreign
  call renew a 30000 ''
  replies lost
  call release a level-a 0 ''
  replies lost
  call release a '*' - ''
  replies lost
  call status
  outcome foreign
  same "$(fact type)" "type $(cli TYPE "$LOCK")"
  call force now me 17
  outcome foreign
  call cancel b level-b
  replies cancelled
  same "$(dump "$LOCK")" "$before"
  absent "$QUEUE"
}

@test "another program's key of any type counts as held, and is never modified" {
  foreign_keys is_respected
}

@test "behind another program's key only the first waiter polls, and the dead are dropped" {
  local token
  listen e f
  cli SET "$LOCK" token
  for token in b c d e f; do enqueue $token; done
  same "$(order)" 'e f' # the questions have removed the dead waiters ahead
  enqueue e
  between 1 "${REPLY[1]}" 101
  enqueue f
  between 1001 "${REPLY[1]}" 1101
  call cancel e level-e
  hears f 101
}

@test "a server that is out of memory refuses acquire, but holders can renew and release" {
  local token
  listen d
  CAPACITY=3 hold a hold=20000
  CAPACITY=3 hold b
  LEVEL=inner CAPACITY=3 acquire b
  CAPACITY=3 hold c
  CAPACITY=3 enqueue d
  cli CONFIG SET maxmemory 1
  CAPACITY=3 acquire e
  outcome busy # a question that writes nothing is allowed
  HOW=queue CAPACITY=3 acquire e
  matches "${REPLY[*]}" ^OOM
  HOW=queue CAPACITY=3 TICKET=${TICKETS[d]} acquire d
  matches "${REPLY[*]}" ^OOM
  for token in a b c; do
    call renew $token 60000 ''
    outcome extended
  done
  call release b inner 0 ''
  replies kept 1
  call release b level-b 0 ''
  replies released
  is_handed d
  HOW=queue CAPACITY=3 TICKET=${TICKETS[d]} acquire d
  is_granted d
  call release d level-d 0 ''
  call release c '*' - ''
  replies released
  call release a level-a 0 ''
  outcome cooling
  nearly 20000 "$(cli PTTL "$LOCK")"
  call force now me "$(fence_of a)"
  contains "${REPLY[1]}" " removed "
  absent "$LOCK"
  LOCK=rlock:other acquire z # this lock is free
  matches "${REPLY[*]}" ^OOM
}
