# What is recorded of acquisitions that have ended: history, last, counters, and those that died.

load ../support/helpers
load ../support/scripts

setup() { start_scripts; }

@test "history: there is a line for each acquisition, with how it ended" {
  local end
  WAITED=1234 hold a
  call release a level-a 3 ''
  matches "$(history)" "^$FENCE [0-9]{13} [0-9]{13} 1234 1 3 $(owner a)\$"
  for end in signal:9 timeout evicted,me replaced,me lost; do
    hold "${end%,me}"
    call release "${end%,me}" "level-${end%,me}" - "$end"
  done
  hold b
  call release b '*' - ''
  same "$(ends)" '3 signal:9 timeout evicted,me replaced,me lost released'
  call log 3
  same "${REPLY[0]} $(printf '%s\n' "${REPLY[@]:2}" | cut -d ' ' -f 6 | xargs)" 'history replaced,me lost released'
}

@test "history: only the last level ends the acquisition" {
  hold a
  LEVEL=inner HOW=reenter acquire a
  call release a inner 5 ''
  same "$(ends)" ''
  call release a level-a 0 ''
  same "$(ends)" 0
}

@test "history: a cancelled acquisition leaves no line" {
  acquire a
  call cancel a level-a
  acquire b
  call cancel b level-b '' # in a quorum a waiter has a token of its own
  acquire c
  call release c level-c 0 ''
  call log 10 # which records the dead
  same "$(ends)" 0
}

@test "history: a server of a quorum that was not told the settled fence leaves the line to those that were" {
  local end
  for end in released died; do
    MAX_LEASE=1 wait_until "$PATIENCE" grants_in_quorum "$end"
    [[ $end == died ]] || call release "$end" "level-$end" 0 ''
  done
  SHIFT=60 call log 10 # the second has not been released
  same "${#REPLY[@]}" 2
  cli DEL "$LOCK" "$META" >/dev/null
  MAX_LEASE=1 acquire a
  call settle a 9007199254740000
  call release a level-a 0 ''
  matches "$(history)" "^9007199254740000 [0-9]+ [0-9]+ 0 1 0 $(owner a)\$"
}

@test "history: work that ended well while a run inside went on is done, even if that one dies and nobody has looked" {
  local how
  listen b
  for how in once queue; do
    hold "$how" "once=$how"
    LEVEL=inner-$how HOW=reenter acquire "$how"
    [[ $how == once ]] || enqueue b once=queue
    call release "$how" "level-$how" 0 ''
    outcome kept
    cli DEL "$LOCK" >/dev/null
    HOW=$how TICKET=${TICKETS[b]-} acquire b "once=$how"
    outcome "done"
  done
  same "$(ends)" '0 0'
}

@test "history: a holder whose lease ran out has died, which whoever takes the lock or looks at it records once" {
  local how last
  for how in 'hold b' 'call status' 'call log 10'; do
    cli DEL "$LOCK" "$META" "$HISTORY" >/dev/null
    SHIFT=-60 acquire a kept=1 # its five seconds are over, but a keeper might have renewed it
    $how
    same "$(ends)" died
    call status
    last=$(fact last)
    matches "$last" "^last [0-9]+ [0-9]+ [0-9]+ died $(owner a)\$"
    same "$(fact lost)" 'lost 1'
    call cancel b level-b
    SHIFT=60 call status # the end does not move
    same "$(fact last)" "$last"
    SHIFT=60 call log 10
    same "$(ends)" died
  done
}

@test "history: whoever may not record a death is told of it all the same" {
  SHIFT=-60 acquire a
  cli CONFIG SET min-replicas-to-write 1 >/dev/null # now it refuses to write
  call status
  matches "$(fact last)" "^last [0-9]+ [0-9]+ [0-9]+ died $(owner a)\$"
  same "$(fact lost)" 'lost 1'
  call log 10
  same "${#REPLY[@]}" 3
  matches "${REPLY[2]}" ' died owner-a '
  same "$(history)" ''
}

@test "history: the time of a death is exact if the record is still there" {
  local ended
  CAPACITY=0 TTL=120000 hold b # so that the key stays
  CAPACITY=0 SHIFT=-60 acquire a
  CAPACITY=0 hold c
  ended=$(cut -d ' ' -f 2,3 <<<"$(history)")
  same "$((${ended#* } - ${ended% *}))" 5000
}

@test "history: what nobody renewed died when its lease ended, even if its record is gone and nobody looked" {
  local ended
  TTL=20000 SHIFT=-60 acquire a
  cli DEL "$LOCK"
  hold b
  ended=$(cut -d ' ' -f 2,3 <<<"$(history)")
  same "$((${ended#* } - ${ended% *}))" 20000
}

@test "history: a keeper that comes back after the loss records how its run ended" {
  hold a
  cli DEL "$LOCK"
  call release a level-a 143 lost
  replies lost
  same "$(ends)" lost
  hold b
  same "$(ends)" lost
  call status
  same "$(fact lost)" 'lost 1'
}

@test "history: a marked holder whose lease ran out was evicted" {
  CAPACITY=0 TTL=120000 hold b
  CAPACITY=0 SHIFT=-60 hold a kept=1
  SHIFT=-55 call force evict me "$FENCE"
  CAPACITY=0 hold c
  same "$(ends)" evicted,me
}

@test "history: a marked holder that left nothing behind was evicted too, and has not died" {
  hold a kept=1
  call force evict me "$FENCE"
  call settle a "$((FENCE + 1))"
  cli DEL "$LOCK"
  hold b replace=1
  same "$(ends)" evicted,me
  HOW=queue acquire c replace=1
  outcome busy
  cli DEL "$LOCK"
  call status
  same "$(ends | cut -d ' ' -f 2)" 'replaced,owner-c%20pid%2017%20%22command-c%22'
  same "$(fact evicted) $(fact lost)" 'evicted 2 lost 0'
}

@test "history: the PID of whoever evicted a run is never cut" {
  local long
  long=$(printf 'h%%20%.0s' {1..60})
  hold a
  call release a level-a - "evicted,root@vm%20pid%204194304%20%22$long%22"
  same "$(ends)" evicted,root@vm%20pid%204194304
  hold b
  call release b level-b - "replaced,$long%20pid%204194304%20%22$long%22"
  matches "$(ends)" ' replaced,h[^ ]*\.\.\.%20pid%204194304$'
}

@test "history: whoever comes late corrects the end of a run that seemed to have died" {
  local how
  for how in 'hold b' 'call status'; do
    cli FLUSHALL >/dev/null
    hold a kept=1 once=v42
    cli DEL "$LOCK" # the server was away for longer than the lease
    $how
    same "$(ends)" died
    call release a level-a 0 ''
    same "$(ends)" 0
    call status
    same "$(fact lost) $(fact last | cut -d ' ' -f 5) $(fact success | awk '{print $NF}')" 'lost 0 0 v42'
    acquire c once=v42
    outcome "done"
  done
}

@test "history: a run that ended by itself is recorded as such, though it is told that it no longer held the lock" {
  hold a kept=1 once=v42
  cli DEL "$LOCK"
  call release a level-a 0 ''
  replies lost
  same "$(ends)" 0
  call release a level-a 0 ''
  replies lost
  hold b kept=1 once=v43
  cli DEL "$LOCK"
  hold c
  call release b level-b 0 ''
  replies lost
  same "$(ends)" '0 0'
  call status
  same "$(fact success | awk '{print $NF}') $(fact lost)" 'v43 lost 0'
}

@test "history: what comes late is put in its place among the successes" {
  hold a kept=1 once=v42
  cli DEL "$LOCK"
  hold b kept=1 once=v43
  call release b level-b 0 ''
  call release a level-a 0 ''
  acquire c once=v43
  outcome "done" # it is still the last that has ended
}

@test "history: a hundred lines are kept, and take less than 20 KB however long their owners' words are" {
  local i long
  long=$(printf 'h%%20%.0s' {1..60})
  for i in {1..110}; do
    call acquire "a$i" "level-$i" 1 30000 once '' 0 "$long $long $long 4194304 $long $long" 0 kept=1
    call release "a$i" "level-$i" - "evicted,$long"
  done
  between 100 "$(cli LLEN "$HISTORY")" 103
  (($(history | awk '{if (length($0) > most) most = length($0)} END {print most}') <= 180))
  (($(cli MEMORY USAGE "$HISTORY" SAMPLES 0) < 20480)) || fail "$(cli MEMORY USAGE "$HISTORY" SAMPLES 0)"
  same "$(history | grep -cE '%($|[^0-9A-F]|.[^0-9A-F])')" 0 # nothing is cut within %XX
  nearly 2592000000 "$(cli PTTL "$HISTORY")"
}

@test "history: of a long line the note is cut last" {
  local note=release%20v4.2.0-137-gdeadbeef
  call acquire a level-a 1 30000 once '' 0 "deploy@build-agent-17.example host root 17 $(printf 'word%.0s' {1..40}) $note" 0 kept=1
  call release a level-a 0 ''
  matches "$(history)" "word\\.\\.\\. $note$"
}

@test "history: it lives for thirty days after its last line, whatever the lock's other keys do" {
  hold a
  call release a level-a 0 ''
  hold b
  cli PEXPIRE "$HISTORY" 100000 >/dev/null # the run takes almost a month
  call release b level-b 0 ''
  nearly 2592000000 "$(cli PTTL "$HISTORY")"
  hold c backoff=1-1
  cli PEXPIRE "$HISTORY" 100000 >/dev/null
  call release c level-c 0 ''
  nearly 2592000000 "$(cli PTTL "$HISTORY")"
}

# ---- once

@test "once: after a success with an ID there is nothing to do for that ID, but there is for another" {
  hold a once=v42
  call release a level-a 0 ''
  acquire b once=v42
  matches "${REPLY[*]}" "^done [0-9]+ [0-9]+ [0-9]+ $(owner a) v42\$"
  absent "$LOCK"
  hold c once=v43
  call release c level-c 0 ''
  hold d once=v42 # the last success had another ID
}

@test "once: only a run that ended with 0 is a success" {
  local end token
  for end in '1 -' '0 timeout' '0 evicted,me' '0 lost' '- -'; do
    token=${end//[ ,]/}
    hold "$token" once=v42
    call release "$token" "level-$token" "${end% *}" "$([[ $end == *- ]] || echo "${end#* }")"
  done
  acquire b once=v42
  outcome granted
}

@test "once: waiters for the same work leave with the success, others get the lock" {
  listen b c d e f
  hold a once=v42
  enqueue c once=v43
  enqueue e once=v43 # which goes on waiting
  enqueue b once=v42
  enqueue d once=v42
  enqueue f once=v42
  call release a level-a 0 ''
  is_handed c
  hears e 2000 # all that was published before has arrived by now
  same "$(told b | awk '{print $NF}') $(told d) $(told f)" 'done done done'
  same "$(order)" e
  HOW=queue TICKET=${TICKETS[b]} acquire b once=v42
  outcome "done"
  call release c level-c 0 ''
  HOW=queue WAITED=20000 acquire d once=v42 # it asks after the next success, which has another ID
  outcome "done"
  acquire g once=v42
  outcome granted # it began to ask after that success, and the last one has another ID
}

@test "once: a waiter that came while the work was being done need not do it, though other work was done since" {
  hold a once=v42
  SHIFT=20 call release a level-a 0 ''
  SHIFT=20 acquire b once=v43
  SHIFT=20 call release b level-b 0 ''
  SHIFT=30 HOW=queue WAITED=20000 acquire c once=v42 # it began to wait ten seconds after the work began
  outcome "done"
}

# b and z wait for the same work, a hundred places apart; z is behind as many as one call tells that it is done. The
# others wait for other work; they are alive, since they may not listen.
wait_a_hundred_apart() {
  listen b z
  hold a once=v42
  enqueue b once=v42
  cli EVAL "for i = 1, 99 do
    local ticket = ('%.0f'):format(ARGV[2] + i)
    redis.call('ZADD', KEYS[1], ticket, 't' .. i)
    redis.call('HSET', KEYS[2], 't' .. i,
      table.concat({1, ARGV[1], ARGV[1] + 60000, ticket, 'l' .. i, 30000, 0, ARGV[1], 1, ARGV[3]}, ' '))
  end" 2 "$QUEUE" "$WAITERS" "$(server_ms)" "${TICKETS[b]}" "$(owner t) poll=1" >/dev/null
  enqueue z once=v42
  same "$(cli ZRANK "$QUEUE" z)" 100
}

@test "once: the news that the work is done goes on behind the first hundred, though its bearer is the next in line" {
  wait_a_hundred_apart
  call release a level-a 0 ''
  hears b "done"
  contains "$(cli HKEYS "$LOCK")" t1 # another has the lock
  HOW=queue TICKET=${TICKETS[b]} acquire b once=v42
  outcome "done"
  hears z "done"
  same "$(cli ZRANK "$QUEUE" b)$(cli ZRANK "$QUEUE" z)" ''
}

@test "once: the news that the work is done goes on though its bearer is dropped before it asks" {
  wait_a_hundred_apart
  call release a level-a 0 ''
  hears b "done"
  call cancel stranger level-stranger # which looks who is next
  hears z "done"
}

@test "once: only the last successes are kept" {
  local i
  for i in {1..20}; do
    hold "a$i" once="v$i"
    call release "a$i" "level-a$i" 0 ''
  done
  hold b
  call release b level-b 0 ''
  same "$(cli HGET "$META" success | awk '{print $9}' | xargs)" 'v20 v19 v18 v17 v16 v15 v14'
  acquire c once=v20
  outcome granted # the last success had no ID
}

@test "once: however often the same work succeeds, it takes one place among the last successes" {
  local i
  hold a once=v1
  call release a level-a 0 ''
  for i in {1..9}; do
    hold "b$i" once=v2
    call release "b$i" "level-b$i" 0 ''
    hold "c$i" # without an ID, so that v2 is not the last success when it is asked for again
    call release "c$i" "level-c$i" 0 ''
  done
  same "$(cli HGET "$META" success | awk '{print $9}' | xargs)" 'v2 v1'
}

@test "once: however often other work succeeds, the success for a slot of the calendar is not forgotten" {
  local i
  hold a once=day:2026-11-22
  call release a level-a 0 ''
  for i in {1..9}; do
    hold "b$i" once=v42
    call release "b$i" "level-b$i" 0 ''
    hold "c$i"
    call release "c$i" "level-c$i" 0 ''
  done
  for i in {1..9}; do
    hold "d$i" "once=v$i"
    call release "d$i" "level-d$i" 0 ''
    hold "e$i" "once=hour:2026-11-22T0$i:00Z"
    call release "e$i" "level-e$i" 0 ''
  done
  acquire f once=day:2026-11-22
  outcome "done"
}

@test "once: after a failure the next waiter runs" {
  listen b
  hold a once=v42
  enqueue b once=v42
  call release a level-a 1 ''
  is_handed b
}

@test "once: the time of --once-per counts from the grant of the success, by the server's clock" {
  hold a per=90000
  call release a level-a 0 ''
  SHIFT=80 acquire b per=90000
  outcome "done"
  SHIFT=100 acquire b per=90000
  outcome granted
}

@test "once: any success that was granted in the time of --once-per counts, though a longer one ended later" {
  export CAPACITY=0
  HOW=restore WAITED=100000 acquire a
  acquire b
  call release b level-b 0 ''
  call release a level-a 0 ''
  acquire c per=60000
  contains "${REPLY[*]}" "$(owner b)"
  outcome "done"
}

@test "once: a success that a wrong clock has dated far into the future does not count for ever" {
  SHIFT=999999 acquire a per=90000
  SHIFT=999999 call release a level-a 0 ''
  acquire b per=90000
  outcome granted
}

@test "once: a success that a wrong clock has dated into the future hides no later success" {
  local id
  SHIFT=1000 acquire early once=v41
  SHIFT=1000 call release early level-early 0 ''
  for id in v42 v43; do
    hold "$id" once=$id
    call release "$id" "level-$id" 0 ''
    acquire again once=$id
    outcome "done"
  done
}

@test "once: a success is kept for as long as somebody may ask for it" {
  hold a once=v42
  call release a level-a 0 ''
  nearly 34560000000 "$(cli PTTL "$META")" # 400 days
  hold b
  nearly 34560000000 "$(cli PTTL "$META")"
}

@test "once: a nested run ignores it, unless it names another ID" {
  hold a once=v42
  call release a level-a 0 ''
  hold b once=v43
  LEVEL=inner HOW=reenter acquire b once=v43 per=90000
  outcome granted
  LEVEL=other HOW=reenter acquire b once=v42
  replies once v43
}
