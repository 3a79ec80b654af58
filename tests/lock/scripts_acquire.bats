# acquire.lua: granted, busy, re-entry, slots.

load ../support/helpers
load ../support/scripts

setup() { start_scripts; }

@test "every script begins with its contract" {
  local file verb
  for file in "$SOURCE"/*.lua; do
    verb=$(basename "$file" .lua)
    grep -q -- '^-- KEYS' "$file" || continue # a part of other scripts
    matches "$(head -1 "$file")" "^-- $verb: "
    for word in KEYS ARGV '->'; do
      sed '/^[^-]/,$d' "$file" | grep -q -- "^-- $word " || fail "$file does not tell $word"
    done
  done
}

@test "acquire: a grant has a fence, slot 0 and a lease, and the key lives as long as that" {
  local before after
  before=$(cli TIME | head -1)
  acquire a
  after=$(cli TIME | head -1)
  outcome granted
  between "${before}000000" "${REPLY[1]}" "$((after + 1))000000"
  same "${REPLY[*]:2}" '0 5000' # the lease until its first renewal
  same "$(cli HGET "$LOCK" rlock)" 1
  nearly 5000 "$(cli PTTL "$LOCK")"
  same "$(cli KEYS '*' | sort | xargs)" "$LOCK $META" # a free lock is taken without a queue
  nearly 2592000000 "$(cli PTTL "$META")"
}

@test "acquire: a repetition for the same level gets the same answer, and counts once" {
  local first
  acquire a
  first=${REPLY[*]}
  acquire a
  replies "$first"
  HOW=queue acquire a
  replies "$first"
  counts_levels 1
  absent "$QUEUE"
}

@test "acquire: another level of the same token re-enters with the same fence, and lengthens the lease" {
  local fence
  acquire a
  fence=${REPLY[1]}
  LEVEL=inner HOW=reenter TTL=60000 acquire a
  same "${REPLY[*]::3}" "granted $fence 0"
  nearly 5000 "${REPLY[3]}"
  call renew a 60000 inner
  LEVEL=innermost HOW=reenter TTL=1000 acquire a
  nearly 60000 "${REPLY[3]}" # never shortened
  counts_levels 3
}

@test "acquire: re-entry with a token that does not hold is lost, and takes nothing" {
  HOW=reenter acquire a
  replies lost
  acquire b
  HOW=reenter acquire a
  replies lost
  absent "$QUEUE"
}

@test "acquire: re-entry passes a queue" {
  hold a
  listen b
  enqueue b
  LEVEL=inner HOW=reenter acquire a
  outcome granted
  same "$(order)" b
}

@test "acquire: levels that were killed leave the record when another level comes, and the first stays" {
  local i
  TTL=600000 hold a kept=1
  for i in {1..5}; do SHIFT=$((i * 10)) LEVEL=inner$i HOW=reenter acquire a; done # each lives for half a minute
  SHIFT=90 call renew a 600000 level-a
  SHIFT=90 call renew a 600000 '' # which keeps none alive that is dead
  SHIFT=90 LEVEL=last HOW=reenter acquire a
  outcome granted
  matches "$(field_of a 10)" '^level-a:[0-9]+,last:[0-9]+$'
  SHIFT=90 call release a inner5 137 ''
  replies kept 2
  SHIFT=700 LEVEL=late HOW=reenter acquire a
  replies lost
}

@test "acquire: busy tells how long to sleep, how much of the lease is left, and who holds" {
  TTL=1900 acquire a
  acquire b
  same "${REPLY[0]} ${REPLY[2]} ${REPLY[6]}" "busy  $(owner a)"
  between 1 "${REPLY[1]}" 1901
  between 0 "${REPLY[3]}" 1900
  between 1 "${REPLY[4]}" 1900
  same "${REPLY[5]}" 0
  absent "$QUEUE"
}

@test "acquire: a claim with another mode or number of slots does not fit, and is told what is in force" {
  CAPACITY=3 hold a
  for CAPACITY in 0 1 2 4; do
    acquire b
    same "${REPLY[0]} ${REPLY[8]}" 'busy 3'
  done
  unset CAPACITY
  listen b
  CAPACITY=4 enqueue b
  same "${REPLY[*]:8}" '3 1 1'
  CAPACITY=3 acquire c # a newcomer with the old number does not pass
  same "${REPLY[0]} ${REPLY[*]:8}" 'busy 3 0 1'
  call release a level-a 0 ''
  is_handed b
  same "$(cli HGET "$LOCK" rlock)" 4
}

@test "acquire: re-entry is refused in a mode that the token's does not allow" {
  CAPACITY=0 acquire a
  LEVEL=inner CAPACITY=1 HOW=reenter acquire a
  replies upgrade 0
  LEVEL=inner CAPACITY=2 HOW=reenter acquire a
  replies upgrade 0
  LEVEL=inner CAPACITY=0 HOW=reenter acquire a
  outcome granted
  call release a '*' - ''
  CAPACITY=2 acquire b
  LEVEL=inside CAPACITY=1 HOW=reenter acquire b # somebody else may hold the second slot
  replies upgrade 2
  call release b '*' - ''
  acquire c
  LEVEL=inmost CAPACITY=0 HOW=reenter acquire c # exclusive is more than shared
  outcome granted
}

@test "acquire: fences rise even if the last one is ahead of the clock, and by exactly 1 then" {
  remember_floor 9007199254740000
  acquire a
  same "${REPLY[1]}" 9007199254740001
  call release a '*' - ''
  acquire b
  same "${REPLY[1]}" 9007199254740002
}

@test "acquire: slots are numbered from 0, the lowest free one first" {
  local token
  for token in a b; do CAPACITY=3 hold $token; done
  CAPACITY=3 acquire c
  same "${REPLY[2]}" 2
  call renew c 30000 level-c
  CAPACITY=3 acquire d
  outcome busy
  call release b level-b 0 ''
  CAPACITY=3 acquire d
  same "${REPLY[2]}" 1
}

@test "acquire: the seat of a holder whose lease has ended is free while others hold on" {
  CAPACITY=2 TTL=1000 acquire a
  CAPACITY=2 hold b
  sleep 1.1
  call renew a 30000 ''
  replies lost
  call release a level-a 0 ''
  replies lost
  CAPACITY=2 acquire c
  same "${REPLY[2]}" 0
  same "$(cli HEXISTS "$LOCK" a)" 0
}

@test "acquire: --min-hold of an inner level counts too" {
  acquire a
  LEVEL=inner HOW=reenter acquire a hold=20000
  call release a '*' - ''
  outcome cooling
}

@test "acquire: a taker whose grant ran out before it knew of it does not wait until that has cooled" {
  SHIFT=-6 acquire a hold=60000
  HOW=queue acquire b
  outcome busy
  call cancel b level-b
  HOW=queue TICKET=1 acquire a hold=60000
  outcome granted
  call log 10
  same "${#REPLY[@]}" 2 # no run has died
}

@test "acquire: a level that is given back to a server does not begin the minimum hold anew" {
  acquire a hold=60000
  LEVEL=inner HOW=reenter WAITED=50000 acquire a hold=60000
  call release a level-a 0 ''
  call release a inner 0 ''
  outcome cooling
  nearly 60000 "${REPLY[1]}"
  cli FLUSHALL >/dev/null
  HOW=restore WAITED=50000 wait_until "$PATIENCE" grants_in_quorum b hold=60000
  LEVEL=inner-b HOW=reenter WAITED=50000 MAX_LEASE=1 acquire b hold=60000
  outcome granted
  call status
  between 5000 $(($(fact holder | cut -d ' ' -f 3) - REPLY[1])) 10000
}

@test "acquire: what is given back to a server is held there for the whole lease" {
  HOW=restore WAITED=9000 acquire a
  outcome granted
  same "${REPLY[3]}" 30000
  nearly 30000 "$(cli PTTL "$LOCK")"
}

@test "acquire: whoever is to have it back here, and is in the queue by a late question, leaves the queue" {
  hold a
  MAX_LEASE=1 HOW=queue wait_until "$PATIENCE" is_queued_in_quorum early
  HOW=restore MAX_LEASE=1 acquire b waiter=b
  outcome lost
  same "$(cli ZCARD "$QUEUE") $(cli HLEN "$WAITERS")" '0 0'
}

is_queued_in_quorum() { # TOKEN: by a question for the waiter `b`
  acquire "$1" waiter=b || return
  [[ ${REPLY[0]} == busy ]]
}

@test "renew: a lock whose expiry somebody has removed gets that of its longest holder" {
  CAPACITY=0 hold a
  CAPACITY=0 acquire b
  cli PERSIST "$LOCK"
  call renew b 6000 level-b
  nearly 30000 "$(cli PTTL "$LOCK")"
}

@test "renew: it takes no longer if there are thousands of holders" {
  local one
  CAPACITY=0 hold a
  renew_often
  one=$SPENT
  crowd $((BEGAN + 60000))
  renew_often
  ((SPENT < 5 * one)) || fail "$one us became $SPENT us"
}

# Sets SPENT to what Redis spent on 20 renewals, in us.
renew_often() {
  local i
  cli CONFIG RESETSTAT >/dev/null
  for i in {1..20}; do call renew a 30000 level-a; done
  SPENT=$(cli INFO commandstats | sed -nE 's/^cmdstat_eval:.*usec=([0-9]+),.*/\1/p')
}

