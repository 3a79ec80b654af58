# Waiting for a lock: first come, first served; the dead delay nobody; nothing is left behind.

load ../support/helpers
load ../support/supervision

META='{rlock:job}:meta'

setup() {
  hermetic
  start_redis
  declare -gA PIDS=()
}

# take: the lock is held, without a process, until `give`
take() {
  try acquire job --ttl 60 "$@"
  exits 0
  TOKEN=$OUT
}

give() {
  RLOCK_TOKEN=$TOKEN try release job
  exits 0
}

# line_up NAME [OPTION...]: a run that waits behind those before it, then logs its NAME and its fence, which is the time
# of its grant in us by the server's clock. Its command is $THEN.
line_up() {
  local name=$1
  shift
  start "$name" rlock run --key job "$@" -- sh -c "echo $name \$RLOCK_FENCE >>$T/log; ${THEN:-:}"
  PIDS[$name]=$PID
  wait_until "$PATIENCE" is_queued "$PID"
}

listening() { [[ $(cli CLIENT LIST TYPE pubsub | grep -c addr) == "$1" ]]; } # COUNT

# all_served NAME...: these were served in this order, and the lock is free, with no key left but its memory
all_served() {
  all_served_somehow "$@"
  same "$(awk '{print $1}' "$T/log" | xargs)" "$*"
}

# all_served_somehow NAME...: these were served, each once and in any order, and the lock is free as above
all_served_somehow() {
  local name
  for name; do
    finish "${PIDS[$name]}"
    exits 0
  done
  same "$(awk '{print $1}' "$T/log" | sort)" "$(printf '%s\n' "$@" | sort)"
  wait_until 5 nothing_but_meta
}

nothing_but_meta() { [[ $(cli KEYS '*' | grep -vE ':history$|:ended:') == "$META" ]]; }

server_ms() { cli EVAL 'local t = redis.call("TIME") return t[1] * 1000 + math.floor(t[2] / 1000)' 0; }

granted_ms() { echo $(($(awk -v name="$1" '$1 == name {print $2}' "$T/log") / 1000)); } # NAME

# no_stall_over LIMIT SINCE: each grant came within LIMIT ms of the one before, the first within LIMIT ms of SINCE
no_stall_over() {
  awk -v limit="$1" -v last="$2" '{
    gap = $2 / 1000 - last
    last = $2 / 1000
    if (gap > limit) { print $1 " was served after " gap " ms"; late = 1 }
  } END { exit late }' "$T/log"
}

# ---- order

@test "12 waiters are served in their order" {
  local i names=()
  take
  for i in {1..12}; do
    line_up "$i"
    names+=("$i")
  done
  give
  all_served "${names[@]}"
}

@test "30 waiters of which 10 are killed: the others are served in order, with no stall over 1.5 s" {
  local i victim victims=() names=() begin
  take
  for i in {1..30}; do THEN='sleep .05' line_up "$i"; done
  # shellcheck disable=SC2207 # numbers
  victims=($(shuf -i 1-15 -n 5) $(shuf -i 20-30 -n 5))
  for victim in "${victims[@]::5}"; do kill -KILL "${PIDS[$victim]}"; done
  begin=$(server_ms)
  give
  for victim in "${victims[@]:5}"; do # while the others go on; their turn is a second away
    sleep "0.0$((RANDOM % 10))"
    kill -KILL "${PIDS[$victim]}"
  done
  for i in {1..30}; do [[ " ${victims[*]} " == *" $i "* ]] || names+=("$i"); done
  all_served "${names[@]}"
  no_stall_over 1500 "$begin"
}

@test "100 waiters cost as few script calls per grant as 5 do: at most 3" {
  local count i before calls
  for count in 5 100; do
    take
    PIDS=()
    for ((i = 0; i < count; ++i)); do
      start "$i" rlock run --key job -- true
      PIDS[$i]=$PID
    done
    wait_until "$PATIENCE" waiting "$count"
    before=$(script_calls)
    give
    for i in "${PIDS[@]}"; do
      finish "$i"
      exits 0
    done
    calls=$(($(script_calls) - before))
    echo "# $count waiters: $calls script calls" >&3
    ((calls <= 3 * count)) || fail "$calls script calls for $count grants"
    wait_until 5 nothing_but_meta
  done
}

@test "newcomers do not pass the queue, with -n or without" {
  local i
  take
  for i in {1..6}; do THEN='sleep .1' line_up "$i"; done
  start newcomer rlock run --key job -- sh -c "echo newcomer >>$T/log"
  PIDS[newcomer]=$PID
  give
  until try run --key job -n -- sh -c "echo nonblock >>$T/log" && ((STATUS != 75)); do :; done
  exits 0
  for i in 1 2 3 4 5 6 newcomer; do
    finish "${PIDS[$i]}"
    exits 0
  done
  same "$(awk '{print $1}' "$T/log" | xargs)" '1 2 3 4 5 6 newcomer nonblock'
}

@test "-n does not take a lock that was handed to the next in line" {
  take
  line_up slow
  kill -STOP "${PIDS[slow]}"
  give
  try acquire job -n
  kill -CONT "${PIDS[slow]}"
  exits 75
  contains "$ERR" 'held by'
  all_served slow
}

# ---- the end of a wait

@test "-w is a single deadline, whatever happens meanwhile" {
  local begin
  take
  begin=$(now_ms)
  line_up first
  start second rlock run --key job -w 2 -- touch "$T/ran"
  PIDS[second]=$PID
  wait_until "$PATIENCE" is_queued "$PID"
  while (($(now_ms) - begin < 1500)); do
    cli CLIENT KILL TYPE pubsub >/dev/null
    cli CLIENT KILL TYPE normal SKIPME yes >/dev/null
    sleep 0.1
  done
  finish "${PIDS[second]}"
  exits 75
  begin=$(($(now_ms) - begin))
  ((begin >= 2000 && begin < 4000)) || fail "gave up after $begin ms"
  wait_until 5 waiting 1
  give
  all_served first
}

@test "a waiter that gives up names the holder of that moment" {
  take --holder early
  THEN='sleep 600' line_up late --holder late
  start impatient rlock run --key job -w 2 -- true
  PIDS[impatient]=$PID
  wait_until "$PATIENCE" is_queued "$PID"
  kill -STOP "$PID" # so that it hears of nothing
  give
  wait_for_text late "$T/log"
  sleep 2
  kill -CONT "${PIDS[impatient]}"
  finish "${PIDS[impatient]}"
  exits 75
  matches "$(<"$T/impatient.err")" 'waiting for job, held by early[^;]*, lease [^;]* left; .*gives up in [0-9]+m?s'$'\n''.*not acquired: held by late pid .*; the wait of 2s is over$'
}

@test "a waiter is told the holder's note, its place in the queue, and in the end how long it waited" {
  take --note 'release 7'
  line_up first
  line_up second
  matches "$(<"$T/first.err")" '^rlock: waiting for job, held by .* \(release 7\) for [^;]*, lease [0-9.]+s left$'
  wait_for_text 'place 2 in the queue' "$T/second.err"
  sleep 1
  give
  finish "${PIDS[second]}"
  exits 0
  matches "$(<"$T/second.err")" $'\nrlock: job acquired after [0-9.]+s$'
}

@test "status shows the waiters in their order" {
  take
  line_up first --holder alice
  line_up second --shared --holder bob
  try status job --json
  exits 0
  jq -e --argjson one "${PIDS[first]}" --argjson two "${PIDS[second]}" --arg host "$(uname -n)" '.[0] | .waiting == 2 and
    (.waiters | map([.holder, .host, .pid, .position, .mode])) ==
      [["alice", $host, $one, 1, "exclusive"], ["bob", $host, $two, 2, "shared"]] and
    (.waiters[0].waiting_ms | . >= 0 and . < 20000) and .waiters[0].waiting_ms >= .waiters[1].waiting_ms' "$T/out"
  try status job
  matches "$OUT" ' 2 \(alice\) +- +- +[0-9]+$'
  give
  all_served first second
}

@test "a waiter that a signal ends leaves the queue" {
  local name
  take
  for name in first second third; do line_up $name; done
  kill -TERM "${PIDS[first]}"
  kill -INT "${PIDS[second]}"
  finish "${PIDS[first]}"
  exits 143
  finish "${PIDS[second]}"
  exits 130
  waiting 1
  give
  all_served third
}

@test "a waiter that a signal ends at the moment of its wake-up passes the lock on" {
  local begin
  take
  line_up first
  line_up second
  kill -STOP "${PIDS[first]}"
  kill -TERM "${PIDS[first]}" # found when it goes on, beside the wake-up
  begin=$(server_ms)
  give
  kill -CONT "${PIDS[first]}"
  finish "${PIDS[first]}"
  exits 143
  all_served second
  no_stall_over 900 "$begin" # the seat would have been kept for 5 s
}

# ---- the dead

@test "the lock of a crashed holder goes to the next when its lease ends, not a poll later" {
  local end
  hold job --ttl 3
  line_up next
  kill -KILL "$HOLDER"
  end=$(($(server_ms) + $(cli PTTL rlock:job)))
  all_served next
  end=$(($(granted_ms next) - end))
  ((end >= -10 && end < 900)) || fail "served $end ms after the lease"
}

@test "a waiter that is killed just as it is handed the lock costs five seconds" {
  local begin
  take
  line_up first
  line_up second
  kill -STOP "${PIDS[first]}"
  begin=$(server_ms)
  give
  kill -KILL "${PIDS[first]}"
  all_served second
  no_stall_over 9000 "$begin" # not the 30 s of a lease
}

@test "a waiter that was stopped while it was handed the lock does not use it once it is continued" {
  take
  line_up first
  THEN='sleep 0.5; echo second-ended >>'$T/log line_up second
  kill -STOP "${PIDS[first]}"
  give
  wait_for_text second "$T/log"
  kill -CONT "${PIDS[first]}"
  local name
  for name in second first; do
    finish "${PIDS[$name]}"
    exits 0
  done
  same "$(awk '{print $1}' "$T/log" | xargs)" 'second second-ended first'
}

@test "a waiter whose connection has died in silence gets its turn, however busy the lock is" {
  local near=$RLOCK_REDIS pid busy=()
  take
  start_proxy
  line_up far --redis-timeout 500ms
  network strand
  RLOCK_REDIS=$near
  for _ in 1 2; do
    start busy sh -c 'while [ ! -e "$0/end" ]; do rlock run --key job -- sleep .1; done' "$T"
    busy+=("$PID")
  done
  give
  wait_until 10 gone "${PIDS[far]}" # it once took 20 s and more, unless it was lucky
  touch "$T/end"
  for pid in "${PIDS[far]}" "${busy[@]}"; do
    finish "$pid"
    exits 0
  done
}

@test "a queue whose waiters have all died delays nobody" {
  local i
  take
  for i in {1..5}; do line_up "$i"; done
  for i in {1..5}; do kill -KILL "${PIDS[$i]}"; done
  for i in {1..5}; do finish "${PIDS[$i]}"; done
  give
  try run --key job -n -- true
  exits 0
  nothing_but_meta
}

@test "messages that ask for a longer sleep do not cost a waiter its place" {
  local reader
  take --shared
  reader=$TOKEN
  take --shared
  line_up first
  line_up second
  sleep 1.5 # the first may sleep for 2 s
  RLOCK_TOKEN=$reader try release job
  sleep 1.8 # now those 2 s and the grace of 1 s have passed
  give
  all_served first second
}

@test "of two messages that arrive together the second counts too" {
  local begin
  take
  line_up slow
  kill -STOP "${PIDS[slow]}"
  cli PUBLISH "$(cli PUBSUB CHANNELS '*')" 1900
  begin=$(server_ms)
  give
  kill -CONT "${PIDS[slow]}"
  all_served slow
  no_stall_over 1500 "$begin"
}

# ---- connections

@test "a waiter whose connection is killed keeps its place" {
  local type
  take
  line_up first
  line_up second
  for type in pubsub normal pubsub; do
    cli CLIENT KILL TYPE $type SKIPME yes
    wait_until "$PATIENCE" listening 2
    wait_until "$PATIENCE" waiting 2
  done
  give
  all_served first second
}

@test "a waiter that was taken for dead while its connection was broken gets its place back" {
  take
  line_up first
  line_up second
  kill -STOP "${PIDS[first]}"
  cli CLIENT KILL TYPE pubsub
  wait_until "$PATIENCE" waiting 1 # the second has come back, and its question has removed the first
  kill -CONT "${PIDS[first]}"
  wait_until "$PATIENCE" waiting 2
  give
  all_served first second
}

@test "when a server has lost everything, the first that asks again wakes the others, though they know of a long lease" {
  take
  line_up first
  line_up second
  line_up third
  cli FLUSHALL
  all_served_somehow first second third # whoever has asked first since the loss is the first
}

@test "the queue keeps its order when a server with persistence restarts" {
  local name
  stop_redis
  start_redis --appendonly yes --appendfsync always
  take
  for name in first second third; do line_up $name; done
  stop_redis
  try_port "$REDIS_PORT" --appendonly yes --appendfsync always
  SERVERS+=("$REDIS_PID")
  wait_until "$PATIENCE" listening 3
  wait_until "$PATIENCE" waiting 3
  exists rlock:job
  give
  all_served first second third
}

@test "all waiters ask again when the server restarts empty" {
  local name
  take
  for name in first second third; do line_up $name; done
  stop_redis
  try_port "$REDIS_PORT"
  SERVERS+=("$REDIS_PID")
  all_served_somehow first second third
}

@test "rlock polls if it may not subscribe, and says so with -v" {
  local rule
  cli ACL WHOAMI || skip "this server has no ACL"
  take
  export RLOCK_USERNAME=poller RLOCK_PASSWORD=secret
  for rule in '-subscribe allchannels' '-unsubscribe allchannels' 'resetchannels'; do
    # shellcheck disable=SC2086 # two rules
    cli ACL SETUSER poller reset on '>secret' '~*' +@all $rule
    start poller rlock run --key job -v -- true
    wait_for_text 'polls' "$T/poller.err"
    give
    finish "$PID"
    exits 0
    take
    try run --key job -w 400ms -- true
    exits 75
    ((TOOK >= 400 && TOOK < 4000)) || fail "took $TOOK ms"
    [[ $ERR != *polls* ]]
  done
}

has_long_lease() { (($(cli PTTL rlock:job) > 1800000)); }

@test "a waiter behind a long lease asks at least once a minute" {
  hold job --ttl 1h
  wait_until "$PATIENCE" has_long_lease # before its first renewal it is short
  start waiter rlock run --key job -- true
  wait_until "$PATIENCE" exists '{rlock:job}:waiters'
  read -r _ asked alive _ < <(cli HVALS '{rlock:job}:waiters')
  ((alive > asked && alive <= asked + 65000)) || fail "$((alive - asked)) ms after $asked"
}

@test "the keys that a lock leaves behind expire, even if it was held for longer than they live" {
  local key
  mkfifo "$T/go"
  start holder rlock run --key job -- sh -c 'read -r _ <"$0"; exit 3' "$T/go"
  wait_held job
  cli DEL '{rlock:job}:meta'
  echo >"$T/go"
  finish "$PID"
  exits 3
  exists '{rlock:job}:meta' # where failures are counted
  for key in $(cli KEYS '*'); do
    (($(cli PTTL "$key") > 0)) || fail "$key never expires"
  done
}
