# Failures in a row: for how long a lock cools after them, and after how many nobody tries again.

load ../support/helpers
load ../support/scripts

setup() { start_scripts; }

# ends STATUS END TOKEN [OPTION...]: a run that ends so
ends() {
  hold "${@:3}"
  call release "$3" "level-$3" "$1" "$2"
}

# cools MS: the run that has just ended leaves the lock cooling for so long; then it has cooled
cools() {
  outcome cooling
  nearly "$1" "${REPLY[1]}"
  cli DEL "$LOCK" >/dev/null
}

@test "the lock cools twice as long after each further failure, up to the most, and a success begins anew" {
  local ms
  for ms in 100000 200000 400000 500000; do
    ends 3 '' "after-$ms" backoff=100000-500000
    cools "$ms"
  done
  ends 0 '' fine
  outcome released
  ends 3 '' again backoff=100000-500000
  cools 100000
}

@test "failures after a success count also if the clock was set back between them, and those before it do not" {
  SHIFT=7199 ends 3 '' before backoff=100000-500000
  cli DEL "$LOCK" >/dev/null
  SHIFT=7200 ends 0 '' fine
  ends 3 '' a backoff=100000-500000
  cools 100000
  ends 3 '' b backoff=100000-500000
  cools 200000
}

@test "whoever comes is told after how many failures the lock cools, how the last ended, and until when" {
  ends 3 '' a backoff=100000-500000
  cools 100000
  ends - signal:9 b backoff=100000-500000
  acquire c
  outcome busy
  same "${REPLY[6]}" "$(owner b) 2,signal:9"
  nearly 200000 "${REPLY[5]}"
}

@test "whoever finds out that a run has died sees the lock cool at once, in whatever mode it was taken" {
  local options capacity look
  for capacity in 0 1 3; do
    for options in kept=1 'kept=1 hold=80000' hold=80000 ''; do
      for look in status 'log 10'; do
        cli FLUSHALL >/dev/null
        # shellcheck disable=SC2086 # words
        SHIFT=-60 CAPACITY=$capacity WAITED=1234 acquire a backoff=100000-100000 $options
        # shellcheck disable=SC2086 # words
        call $look
        same "$(history | cut -d ' ' -f 6)" died
        call status
        same "${REPLY[0]}" cooling
        matches "$(fact holder)" ' failed=1,died( |$)'
        CAPACITY=$capacity acquire b
        same "${REPLY[0]} ${REPLY[6]}" "busy $(owner a) 1,died"
      done
    done
  done
}

@test "a grant that its taker never heard of does not make the lock cool for longer after another run" {
  SHIFT=-300 acquire unheard backoff=100000-500000
  SHIFT=-250 call status # finds that it has died
  SHIFT=-20 acquire other backoff=100000-500000
  acquire unheard backoff=100000-500000
  same "${REPLY[0]} ${REPLY[6]}" "busy $(owner other) 1,died"
  between 0 "${REPLY[5]}" 100000
}

@test "lost leases and timeouts are failures; a run that was made to stop is not" {
  local end
  for end in lost timeout; do
    ends - "$end" "$end" backoff=100000-100000
    cools 100000
  done
  for end in released interrupted evicted,x replaced,x; do
    ends - "$end" "${end%,x}" backoff=100000-100000
    outcome released
  done
  hold excused backoff=100000-100000
  call release excused level-excused 143 '' 1
  outcome released
}

@test "the seat of a reader that failed keeps all others out until it has cooled" {
  CAPACITY=0 hold reader
  CAPACITY=0 ends 3 '' fails backoff=100000-100000
  CAPACITY=0 acquire other
  outcome busy
  same "${REPLY[6]}" "$(owner fails) 1,3"
  SHIFT=101 CAPACITY=0 acquire other
  outcome granted
}

@test "a pause after a failure neither shortens a minimum hold nor lasts as long" {
  SHIFT=-20 TTL=10000 hold a kept=1 hold=100000 backoff=500000-500000
  call status # finds that it has died
  acquire b
  contains "${REPLY[6]}" ' 1,died'
  call release a level-a 0 '' # it has not
  acquire b
  same "${REPLY[0]} ${REPLY[6]}" "busy $(owner a)"
  nearly 80000 "${REPLY[5]}"
  SHIFT=81 acquire b
  outcome granted
  cli FLUSHALL >/dev/null
  SHIFT=-20 TTL=10000 hold a kept=1 hold=100000 backoff=30000-30000
  call status
  call release a level-a - lost
  acquire b
  nearly 80000 "${REPLY[5]}"
  cli FLUSHALL >/dev/null
  export CAPACITY=3
  ends 3 '' fails hold=100000 backoff=50000-50000
  acquire other
  outcome busy
  SHIFT=51 acquire other # the others need not wait until the seat is free
  same "${REPLY[0]} ${REPLY[2]}" 'granted 1'
}

@test "attempts are counted for each ID, whatever was done between them, until one of them succeeds" {
  ends 3 '' a once=v1
  ends 4 '' b once=v1 attempts=2
  ends 5 '' c once=v2 attempts=2
  acquire d once=v1 attempts=2
  same "${REPLY[*]:0:3}" 'attempts 2 4'
  acquire e once=v1 attempts=3
  outcome granted
  call release e level-e 0 ''
  ends 0 '' f once=v3
  ends 3 '' g once=v1 attempts=2
  outcome released
}

@test "with a spacing only the attempts within it count, since the last success" {
  ends 3 '' a per=10000
  acquire b per=10000 attempts=1
  outcome attempts
  SHIFT=11 acquire b per=10000 attempts=1
  outcome granted
  call cancel b level-b
  ends 0 '' c
  ends 3 '' d per=1
  acquire e per=10000 attempts=2
  outcome "done"
}

@test "those that wait for the work of an ID leave when its last attempt has failed" {
  listen b c
  hold a once=v1 attempts=1
  enqueue b once=v1 attempts=1
  enqueue c
  call release a level-a 3 ''
  wait_until "$PATIENCE" eval '[[ $(told b) == done ]]'
  is_granted_to c
}

is_granted_to() { same "$(cli HEXISTS "$LOCK" "$1") $(order)" '1 '; }

@test "an attempt that has died counts, also for a waiter that is about to be handed the lock" {
  listen b
  acquire a kept=1 once=v1
  enqueue b once=v1 attempts=1
  cli DEL "$LOCK" >/dev/null # its lease is over
  call cancel c level-c
  wait_until "$PATIENCE" eval '[[ $(told b) == done ]]'
  absent "$LOCK"
}

@test "a waiter that finds out that the last attempt has died leaves the lock to the one behind it" {
  listen b c
  hold a once=v1
  enqueue b once=v1 attempts=1
  enqueue c once=v2
  cli DEL "$LOCK" >/dev/null # its lease is over
  enqueue b once=v1 attempts=1
  outcome attempts
  is_handed c
}

@test "the last fifty failures of an ID are kept, the newest first" {
  local i kept=""
  for ((i = 1; i <= 50; i++)); do kept+="$i $i $i 1 v1 old"$'\n'; done
  cli HSET "$META" state '1 0 0 0 0 0' failures "$kept" >/dev/null
  ends 3 '' a once=v1
  kept=$(cli HGET "$META" failures)
  same "$(wc -l <<<"$kept")" 50
  matches "$kept" "^$FENCE [0-9]+ [0-9]+ 3 v1 host"
}

@test "the attempts of an ID are not forgotten for the failures of other work, nor mistaken for them" {
  local i kept=""
  for i in a b; do ends 3 '' "$i" once=v1 attempts=2; done
  for ((i = 1; i <= 50; i++)); do kept+="$i $i $i 1 = old"$'\n'; done
  cli HSET "$META" failures "$kept$(cli HGET "$META" failures)" >/dev/null
  ends 3 '' c backoff=1-1
  acquire d once=v1 attempts=2
  same "${REPLY[0]} ${REPLY[1]}" 'attempts 2'
  acquire e once=- attempts=1
  outcome granted
}

@test "a grant that is given back after it has run out is no attempt, and nothing cools after it" {
  local options
  for options in attempts=1 'attempts=1 backoff=500000-500000' backoff=500000-500000; do
    for look in true 'call status'; do
      cli FLUSHALL >/dev/null
      # shellcheck disable=SC2086 # words
      SHIFT=-60 acquire a once=x $options
      outcome granted
      $look # finds that it has died
      call cancel a level-a
      # shellcheck disable=SC2086 # words
      acquire b once=x $options
      outcome granted
    done
  done
}

@test "a run inside another that gives up does not make the death of the outer one undone" {
  SHIFT=-60 acquire a once=x attempts=1
  call cancel a inner ''
  acquire b once=x attempts=1
  outcome attempts
}

@test "a server of a quorum that took a run for dead, and is given its record back, has seen no failed attempt" {
  local work=(once=v42 attempts=1)
  MAX_LEASE=1 wait_until "$PATIENCE" grants_in_quorum a "${work[@]}"
  call settle a 9007199254740000 '' 1
  cli DEL "$LOCK" >/dev/null
  MAX_LEASE=1 acquire b "${work[@]}"
  outcome attempts
  HOW=restore MAX_LEASE=1 acquire a "${work[@]}"
  outcome granted
  MAX_LEASE=1 acquire b "${work[@]}"
  outcome busy
}

@test "a taker that has not heard of its grant, and asks again, has made no attempt" {
  local options
  for options in attempts=1 'attempts=1 backoff=500000-500000' backoff=500000-500000; do
    cli FLUSHALL >/dev/null
    # shellcheck disable=SC2086 # words
    SHIFT=-60 acquire a once=x $options
    outcome granted
    call status # finds that it has died
    # shellcheck disable=SC2086 # words
    acquire a once=x $options
    outcome granted
  done
}
