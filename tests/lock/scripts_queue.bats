# The queue that acquire.lua, release.lua and cancel.lua keep, and cancel.lua itself.

load ../support/helpers
load ../support/scripts

setup() { start_scripts; }

@test "queue: tickets rise; they ask when the lease ends, one after the other" {
  local last=0 token
  listen b c d
  TTL=1900 hold a
  enqueue b
  between 1 "${REPLY[1]}" 1901
  call renew a 1900 '' # each time, since a busy machine may take that long for all of this
  enqueue c
  between 21 "${REPLY[1]}" 1921
  call renew a 1900 ''
  enqueue d
  between 41 "${REPLY[1]}" 1941
  call renew a 30000 ''
  for token in b c d; do
    ((${TICKETS[$token]} > last)) || fail "${TICKETS[$token]} after $last"
    last=${TICKETS[$token]}
  done
  same "$(order)" 'b c d'
  enqueue b
  between 1900 "${REPLY[1]}" 2000
  nearly 120000 "$(cli PTTL "$QUEUE")"
  nearly 120000 "$(cli PTTL "$WAITERS")"
}

@test "queue: tickets rise even if the last one is ahead of the clock" {
  hold a
  listen b
  cli HSET "$META" ticket 9007199254740000
  enqueue b
  same "${TICKETS[b]}" 9007199254740001
}

@test "queue: a waiter that was dropped by mistake gets its place back" {
  listen b c
  hold a
  enqueue b
  enqueue c
  cli ZREM "$QUEUE" b
  cli HDEL "$WAITERS" b
  enqueue b
  same "$(order)" 'b c'
}

@test "queue: a release hands the lock to the first waiter only, for five seconds" {
  local fence
  listen b c
  hold a
  enqueue b
  enqueue c
  call release a level-a 0 ''
  is_handed b
  fence=$(fence_of b)
  acquire d
  same "${REPLY[0]} ${REPLY[6]}" "busy $(owner b)"
  between 1 "${REPLY[4]}" 5000
  between 1 "${REPLY[1]}" 2000
  call renew b 30000 ''
  replies extended 30000 1
  enqueue b
  same "${REPLY[*]::2}" "granted $fence"
  same "$(order)" c
  hears c 2000
}

@test "queue: a waiter is told how long after its last question it was handed the lock" {
  local since
  listen b
  hold a
  enqueue b
  sleep 0.3
  call release a level-a 0 ''
  is_handed b
  since=$(grep ^granted "$T/ear-b.out" | awk '{print $6}')
  between 300 "$since" "$(($(cli TIME | head -1) * 1000 + 1000 - ASKED[b]))"
}

@test "queue: a lock that is not confirmed within five seconds goes to the next" {
  listen b c
  hold a
  enqueue b
  enqueue c
  call release a level-a 0 ''
  wait_until "$PATIENCE" grants c
  absent "$QUEUE"
}

grants() {
  enqueue "$1" || return
  [[ ${REPLY[0]} == granted ]]
}

@test "queue: a waiter that did not confirm in time, and asks again, can hold beside others" {
  listen c
  CAPACITY=2 hold a
  CAPACITY=2 acquire b
  CAPACITY=2 enqueue c
  call release b level-b 0 ''
  is_handed c
  wait_until "$PATIENCE" alone # its five seconds are over
  CAPACITY=2 enqueue c
  is_granted c
}

alone() {
  call status || return
  (($(fact holder | wc -l) == 1))
}

@test "queue: the next in line is told when the lock that another was handed falls free, and nothing else" {
  listen b c
  hold a
  enqueue b
  enqueue c
  call release a level-a 0 ''
  TTL=1500 enqueue b
  is_granted b
  call renew b 30000 ''
  LEVEL=inner acquire b
  call release b inner 0 ''
  hears c 2000
}

@test "queue: a question that finds the first waiter dead tells the next in line when to ask" {
  listen b d
  hold a
  enqueue d
  enqueue b
  kill "$PID"
  wait_until "$PATIENCE" deaf d
  acquire c
  outcome busy
  same "$(order)" b
  hears b 2000
}

deaf() { same "$(cli PUBSUB NUMSUB "{rlock:job}:wake:level-$1" | tail -1)" 0; } # TOKEN

@test "queue: a waiter that asks again without its ticket, because the reply was lost, is told the same ticket" {
  local ticket
  hold a
  enqueue b
  ticket=${TICKETS[b]}
  unset 'TICKETS[b]'
  enqueue b
  same "${TICKETS[b]}" "$ticket"
  same "$(cli ZSCORE "$QUEUE" b)" "$ticket"
}

@test "queue: a hundred dead waiters cost a release nothing but their removal" {
  local i
  listen z
  hold a
  for i in {1..100}; do echo "ZADD $QUEUE $i dead$i"; done | cli >/dev/null
  for i in {1..50}; do echo "HSET $WAITERS dead$i '1 0 99999999999999 $i level 30000 0 0 0 owner'"; done | cli >/dev/null
  enqueue z
  same "$(cli ZCARD "$QUEUE")" 1 # its question has removed the dead
  for i in {1..100}; do echo "ZADD $QUEUE $i dead$i"; done | cli >/dev/null
  call release a level-a 0 ''
  is_handed z
  absent "$QUEUE"
}

@test "queue: a newcomer takes a free lock whose waiters are all dead, and removes them all" {
  local token
  hold a
  for token in b c d; do enqueue $token; done
  call release a level-a 0 ''
  absent "$QUEUE"
  acquire e
  is_granted e
  same "$(cli KEYS '*' | grep -v :ended: | sort | xargs)" "$LOCK $HISTORY $META"
}

@test "queue: a waiter that has not asked again after its sleep is dropped, even if it listens, and is told so" {
  listen b c
  hold a
  enqueue b
  enqueue c
  cli HSET "$WAITERS" b "$(cli HGET "$WAITERS" b | awk '{$3 = 1000; print}')"
  call release a level-a 0 ''
  is_handed c
  hears b 1 # it can ask, and finds its place by its ticket
}

@test "queue: a pattern subscriber does not count as a listening waiter" {
  hold a
  start pattern "$REDIS_CLI" -s "$REDIS_SOCK" PSUBSCRIBE '*'
  wait_for_text psubscribe "$T/pattern.out"
  enqueue b
  call release a level-a 0 ''
  absent "$QUEUE"
  absent "$LOCK"
}

@test "queue: if the server does not tell who listens, all waiters count as alive" {
  cli ACL SETUSER default -pubsub -publish || skip "this server has no ACL"
  hold a
  enqueue b
  call release a level-a 0 ''
  replies released
  absent "$QUEUE"
  acquire c
  same "${REPLY[0]} ${REPLY[6]}" "busy $(owner b)"
}

@test "queue: a waiter whose record cannot be read is dropped" {
  listen b
  hold a
  enqueue b
  cli ZADD "$QUEUE" 1 x
  cli HSET "$WAITERS" x garbage
  call release a level-a 0 ''
  is_handed b
  absent "$QUEUE"
}

@test "queue: readers are handed the lock together, up to the first writer" {
  local token
  listen b c d e
  hold a
  for token in b c e; do CAPACITY=0 enqueue $token; done
  cli ZREM "$QUEUE" e
  unset 'TICKETS[e]'
  enqueue d # a writer
  CAPACITY=0 enqueue e
  call release a level-a 0 ''
  call renew c 30000 level-c # it is looked at after b
  is_handed b
  is_handed c
  hears_nothing e
  CAPACITY=0 acquire f # a newcomer does not pass the writer
  outcome busy
  same "$(order)" 'd e'
}

# As many readers wait behind a as are served by five calls; they are alive, since they may not listen.
crowd_waits() {
  cli EVAL "for i = 1, 250 do
    redis.call('ZADD', KEYS[1], i, 't' .. i)
    redis.call('HSET', KEYS[2], 't' .. i,
      table.concat({0, ARGV[1], ARGV[1] + 60000, i, 'l' .. i, 30000, 0, ARGV[1], 1, ARGV[2]}, ' '))
  end" 2 "$QUEUE" "$WAITERS" "$(server_ms)" "$(owner t) poll=1" >/dev/null
}

@test "queue: a waiter that comes back to a queue that was lost makes the others come back too" {
  listen b c
  hold a
  enqueue b
  enqueue c
  cli DEL "$QUEUE" "$WAITERS"
  enqueue c
  wait_until "$PATIENCE" grep -qx message "$T/ear-b.out"
  same "$(told b)" 1
  enqueue b
  same "$(order)" 'b c'
  enqueue c # the queue is there again
  hears b 1
}

# How many waiters were ever granted the lock. Their leases of five seconds may have ended since on a slow machine.
served() { cli HGET "$META" state | cut -d ' ' -f 3; }

@test "queue: a call serves thirty-two, and tells the next one to ask, which serves as many" {
  local next
  hold a
  crowd_waits
  start ear-t33 "$REDIS_CLI" -s "$REDIS_SOCK" SUBSCRIBE '{rlock:job}:wake:l33'
  wait_for_text subscribe "$T/ear-t33.out"
  call release a level-a 0 ''
  same "$(served) $(cli ZRANGE "$QUEUE" 0 0)" '32 t33'
  wait_until "$PATIENCE" grep -qx message "$T/ear-t33.out"
  same "$(told t33)" 1
  for next in 33 66 99 132 165 198 231; do
    same "$(served)" $((next - 1))
    HOW=queue CAPACITY=0 LEVEL=l$next TICKET=$next acquire t$next
    outcome granted
  done
  same "$(served)" 250
  absent "$QUEUE"
}

@test "queue: a reader behind a writer asks every few seconds, since the writer may have died; another writer does not" {
  listen b c d
  CAPACITY=0 hold a
  enqueue b
  CAPACITY=0 enqueue c
  between 1 "${REPLY[1]}" 4000
  enqueue d
  between 20000 "${REPLY[1]}" 31000
}

@test "queue: all waiters that fit into the free slots are handed them" {
  local token
  listen c d e
  for token in a b; do CAPACITY=2 hold $token; done
  for token in c d e; do CAPACITY=2 enqueue $token; done
  call release a level-a 0 ''
  call release b level-b 0 ''
  is_handed c
  is_handed d 2000
  matches "$(sed -n '/^message$/{n;n;p;}' "$T/ear-e.out" | xargs)" '^[0-9]{3,4}( [0-9]{3,4})*$' # the time at which the handed over slot falls free comes first
}

@test "queue: the first waiter for a slot asks when the first of the leases ends" {
  listen d
  STOPPED=$(date +%s)
  CAPACITY=3 hold a
  CAPACITY=3 TTL=1000 hold b
  CAPACITY=3 hold c
  CAPACITY=3 enqueue d
  same "${REPLY[1]}" 1001
}

@test "cancel: leaves the queue, and passes on the lock that it was handed" {
  listen b c
  hold a
  enqueue b
  enqueue c
  call release a level-a 0 ''
  is_handed b
  call cancel b level-b
  replies cancelled
  is_handed c 2000
  call cancel c level-c
  call cancel c level-c
  replies cancelled
  absent "$QUEUE"
  absent "$WAITERS"
  absent "$LOCK"
}

@test "cancel: gives back a grant that was not used, without a minimum hold, and no other level" {
  listen b
  hold a hold=20000
  LEVEL=inner acquire a
  enqueue b
  call cancel a inner
  call cancel a inner
  call cancel a stranger
  counts_levels 1
  call renew a 30000 ''
  outcome extended
  call cancel a level-a
  replies cancelled
  same "$(cli HEXISTS "$LOCK" a)" 0
  is_handed b '2000 2000 2000'
}

@test "cancel: the last level that asks in vain ends the run that it was inside, with its end and its minimum hold" {
  hold a hold=20000
  LEVEL=inner acquire a
  call release a level-a 3 ''
  replies kept 1
  call cancel a inner
  replies cancelled
  acquire b
  outcome busy
  call status
  matches "$(fact last)" '^last [0-9]+ [0-9]+ [0-9]+ 3 '"$(owner a)$"
}

@test "cancel: an outer run that was killed has died as soon as the run inside has given up" {
  hold a kept=1
  LEVEL=inner acquire a
  SHIFT=20 call renew a 30000 inner
  SHIFT=31 call cancel a inner
  replies cancelled
  SHIFT=31 call status
  matches "$(fact last)" '^last [0-9]+ [0-9]+ [0-9]+ died '"$(owner a)$"
}

@test "cancel: what cools has ended, and does not end again when a run inside gives up late" {
  hold a hold=20000
  LEVEL=inner acquire a
  call release a '*request' - ''
  outcome cooling
  call cancel a inner
  replies cancelled
  same "$(ends)" released
}
