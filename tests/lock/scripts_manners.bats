# Special ways of waiting: only as the newest, behind a few at most, in place of a holder, without listening, or in a
# quorum.

load ../support/helpers
load ../support/scripts

setup() { start_scripts; }

@test "latest: the newest takes the place of the waiter before it, which leaves, and passes nobody else" {
  listen b c d e
  hold a
  enqueue b
  WAITED=300 enqueue c latest=1
  enqueue d
  WAITED=200 enqueue e latest=1
  same "$(order)" 'b e d'
  same "${TICKETS[e]}" "${TICKETS[c]}"
  matches "$(told c)" superseded$
  HOW=queue TICKET=${TICKETS[c]} WAITED=400 acquire c latest=1
  replies superseded "$(owner e)"
  same "$(order)" 'b e d'
}

@test "latest: an older waiter that the server has forgotten is superseded when it comes back" {
  hold a
  listen b c
  WAITED=5000 enqueue b latest=1
  WAITED=1000 enqueue c latest=1
  cli HDEL "$META" superseded
  WAITED=9000 enqueue b latest=1
  replies superseded "$(owner c)"
}

@test "latest: neither a holder nor a waiter that asks again is superseded" {
  listen c
  acquire a latest=1
  enqueue c latest=1
  acquire a latest=1
  outcome granted
  enqueue c latest=1
  outcome busy
  same "$(order)" c
}

@test "latest: one that gives back what came too late is not superseded by itself" {
  WAITED=100 acquire a latest=1
  outcome granted
  call cancel a level-a
  LEVEL=again WAITED=5000 acquire b latest=1
  outcome granted
}

@test "latest: nor by an earlier claim of its own that it could not give back, and whose question took longer" {
  hold a
  enqueue b latest=1
  call acquire c level-c 1 30000 queue '' 9000 "$(owner b)" 0 latest=1
  outcome busy
}

@test "latest: one that is superseded is told by whom, even if that one has left again" {
  hold a
  WAITED=900 enqueue b latest=1
  WAITED=300 enqueue c latest=1
  call cancel c level-c
  HOW=queue WAITED=950 acquire b latest=1
  replies superseded "$(owner c)"
}

@test "latest: one whose round failed in a quorum keeps its place, and is still the newest" {
  hold a
  WAITED=200 enqueue b latest=1
  call cancel b level-b ''
  HOW=queue WAITED=9000 acquire c latest=1
  replies superseded "$(owner b)"
}

@test "replace: an earlier holder with --replace is marked and told; one without it is waited for" {
  listen a b c d
  WAITED=9000 hold a replace=1 kept=1
  enqueue b
  outcome busy
  hears_nothing a
  enqueue c replace=1
  hears a 'end evicted'
  call renew a 30000 level-a
  replies evicted replaced "owner-c%20pid%2017%20%22command-c%22"
  call release a level-a 143 replaced,me
  wait_until "$PATIENCE" grep -q ^granted "$T/ear-b.out"
  enqueue c replace=1
  call renew b 30000 level-b
  outcome extended
}

@test "replace: a run inside the holder is told, too" {
  listen a inner b
  WAITED=9000 hold a replace=1 kept=1
  LEVEL=level-inner HOW=reenter acquire a
  enqueue b replace=1
  hears a evicted
  hears inner evicted
}

@test "replace: a waiter that began before the holder does not replace it" {
  listen b
  WAITED=1000 hold a replace=1 kept=1
  WAITED=9000 enqueue b replace=1
  call renew a 30000 level-a
  outcome extended
}

@test "replace: a holder that began in the same millisecond is evicted, since it came first" {
  STOPPED=$(date +%s)
  listen a b
  hold a replace=1 kept=1
  enqueue b replace=1
  hears a evicted
}

@test "replace: of slots one holder is evicted, the first that has --replace, and no other while that one is ending" {
  export CAPACITY=3
  WAITED=9000 hold a kept=1
  WAITED=9000 hold b replace=1 kept=1
  WAITED=9000 hold c replace=1 kept=1
  listen a b c
  enqueue d replace=1
  enqueue d replace=1
  hears b evicted
  call renew c 30000 level-c
  outcome extended
  call renew b 30000 level-b
  outcome evicted
  call release b level-b 143 replaced,me
  enqueue d replace=1
  outcome granted
}

@test "replace: with another number of slots all who have --replace are evicted, since all must leave" {
  listen a b
  CAPACITY=2 WAITED=9000 acquire a replace=1 kept=1
  CAPACITY=2 WAITED=9000 acquire b replace=1 kept=1
  CAPACITY=3 enqueue c replace=1
  hears a evicted
  hears b evicted
}

@test "replace: with -n nobody is replaced" {
  WAITED=9000 hold a replace=1 kept=1
  acquire b replace=1
  outcome busy
  call renew a 30000 level-a
  outcome extended
}

@test "max-waiting: full if too many wait already; dead waiters do not count" {
  listen b c d
  hold a
  enqueue b max-waiting=2
  enqueue c max-waiting=2
  same "${REPLY[0]}" busy
  enqueue d max-waiting=2
  replies full 2
  same "$(order)" 'b c'
  enqueue c max-waiting=2 # it is in the queue already
  outcome busy
  enqueue d max-waiting=3
  outcome busy
  call cancel d level-d
  enqueue x # it does not listen, and so counts as dead
  cli ZADD "$QUEUE" 1 x >/dev/null
  unset 'TICKETS[d]'
  enqueue d max-waiting=3
  outcome cancelled
  LEVEL=level-e enqueue e max-waiting=3
  outcome busy
}

@test "max-waiting: a ticket is a seat, also of one that was dropped meanwhile" {
  listen c d
  hold a
  enqueue b max-waiting=2 # it does not listen
  enqueue c max-waiting=2
  enqueue d max-waiting=2
  same "$(order)" 'c d'
  enqueue b max-waiting=2
  outcome busy
  same "$(order)" 'b c d'
}

@test "max-waiting: 0 allows no waiter, but takes a lock that is free" {
  HOW=queue acquire a max-waiting=0
  outcome granted
  HOW=queue acquire b max-waiting=0
  replies full 0
  absent "$QUEUE"
}

@test "poll: a waiter that may not listen keeps its place until it should have asked again, and is handed the lock" {
  hold a
  enqueue b poll=1
  between 1 "${REPLY[1]}" 200
  HOW=queue acquire c
  outcome busy
  call release a level-a 0 ''
  same "$(cli HEXISTS "$LOCK" b)" 1
  enqueue b poll=1
  outcome granted
}

@test "poll: a waiter that may not listen asks every two seconds, however many are ahead" {
  local i
  hold a
  for i in {1..25}; do enqueue "b$i" poll=1; done
  same "${REPLY[1]} ${REPLY[9]}" '2000 25'
}

@test "poll: a waiter that has stopped polling is dropped, even if the clock was set back meanwhile" {
  TTL=7200000 hold a
  SHIFT=-10 enqueue b poll=1
  SHIFT=3600 enqueue c poll=1
  call release a level-a 0 ''
  absent "$QUEUE"
  absent "$LOCK"
}

# ---- on one server of a quorum

young() { # the server has not been up for long enough to vote
  MAX_LEASE=1 acquire probe || return
  [[ ${REPLY[0]} != young ]]
}

@test "quorum: a waiting writer keeps readers and newcomers away while it goes on asking, and is handed nothing" {
  wait_until "$PATIENCE" young
  call cancel probe level-probe
  export MAX_LEASE=1
  CAPACITY=0 hold a
  WAITED=5000 HOW=queue acquire w
  same "${REPLY[0]} ${REPLY[9]}" 'busy 1'
  bear_with w
  CAPACITY=0 HOW=once acquire r
  same "${REPLY[0]} ${REPLY[8]}" 'busy 0' # the waiting writer does not make it look held by a writer
  call release a level-a 0 ''
  absent "$LOCK"
  CAPACITY=0 acquire s
  same "${REPLY[0]} ${REPLY[6]}" "busy $(owner w)"
  WAITED=9000 HOW=queue acquire v # it has waited longer, on another server
  is_granted v
  call release v level-v 0 ''
  WAITED=5100 HOW=queue acquire w
  is_granted w
}

@test "quorum: behind waiters that do not fit nobody is granted the lock, whether or not they fit each other" {
  local token
  wait_until "$PATIENCE" young
  call cancel probe level-probe
  export MAX_LEASE=1
  CAPACITY=3 hold a
  for token in w v u; do
    CAPACITY=5 HOW=queue acquire $token
    outcome busy
    bear_with $token
  done
}

@test "quorum: waiting readers do not hold each other back" {
  wait_until "$PATIENCE" young
  call cancel probe level-probe
  export MAX_LEASE=1
  hold a
  CAPACITY=0 WAITED=900 HOW=queue acquire r
  CAPACITY=0 WAITED=800 HOW=queue acquire s
  call release a level-a 0 ''
  CAPACITY=0 WAITED=800 HOW=queue acquire s
  is_granted s
  acquire w
  outcome busy
}

# ---- any name

@test "the queue of a lock with any bytes in its name works" {
  local name
  for name in 'a b' $'t\tab' '100%' 'a%20b' '*' $'\xff\xfe' "it's" '"' '{tag}x'; do
    cli FLUSHALL >/dev/null
    LOCK=rlock:$name
    if [[ $name == '{tag}x' ]]; then base=$LOCK; else base="{$LOCK}"; fi
    QUEUE=$base:queue WAITERS=$base:waiters META=$base:meta HISTORY=$base:history ENDED=$base:ended:
    hold a
    start ear "$REDIS_CLI" -s "$REDIS_SOCK" SUBSCRIBE "$base:wake:level-b"
    wait_for_text subscribe "$T/ear.out"
    enqueue b
    HOW=queue acquire c
    same "$(cli ZRANGE "$QUEUE" 0 0)" b # which is alive
    matches "$(cli --raw HGET "$WAITERS" b)" '^1 [0-9]+ [0-9]+ [0-9]+ level-b 30000 0 [0-9]+ 0 owner-b host'
    call release a level-a 0 ''
    same "$(cli HEXISTS "$LOCK" b)" 1
    stop "$PID"
    unset 'TICKETS[b]'
  done
}
