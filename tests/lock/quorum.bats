# Several --redis: independent servers, of which a majority decides.

load ../support/helpers
load ../support/servers
load ../support/supervision

setup() {
  hermetic
  start_quorum 5
}

exists() { # KEY: on a majority
  local port count=0
  for port in "${QUORUM_PORTS[@]}"; do count=$((count + $(cli_at "$port" EXISTS "$1"))); done
  ((count >= 3))
}

# hold_briefly KEY [TTL]: holds it with a lease of 1 s, as much as --max-lease allows, even on a busy machine; sets HOLDER
# and FENCE
hold_briefly() {
  start holder rlock run --key "$1" --ttl "${2:-1s}" --kill-after 50ms -- sh -c 'echo "$RLOCK_FENCE"; exec sleep 600'
  HOLDER=$PID
  wait_until "$PATIENCE" is_held_or_gone
  FENCE=$(<"$T/holder.out")
  [[ -n $FENCE ]] || fail "rlock run ended: $(<"$T/holder.err")"
}

is_held_or_gone() { [[ -s $T/holder.out ]] || gone "$HOLDER"; }

@test "all servers have the lock while it is held, with one fence, and none has it afterwards" {
  local port
  # On a busy machine a server may lag; a renewal then gives it the lock, with the same fence.
  try run --key job --ttl 1s -- sh -c 'echo "$RLOCK_FENCE"
    until rlock status job --json >"$0" &&
      jq -e ".[0] | (.servers | all(.state == \"held\")) and .holders[0].fence" "$0" >&2; do sleep 0.1; done
    cat "$0"; rlock status job >"$0"' "$T/table"
  exits 0
  same "$(sed 1d <<<"$OUT" | jq -c '.[0] | [.state, .holders[0].fence, .waiting, (.servers | map(.state) | unique)]')" \
    "[\"held\",$(head -n 1 <<<"$OUT"),0,[\"held\"]]"
  matches "$(<"$T/table")" "job +x .*  redis://[^ ]+ +held "
  # A server that lags may learn of the lock only after its release; there the lease ends it.
  for port in "${QUORUM_PORTS[@]}"; do wait_until 3 released_at "$port"; done
}

released_at() { [[ $(cli_at "$1" EXISTS rlock:job) == 0 ]]; } # PORT

# run_us KEY URL...: how long a run takes; one that a busy machine makes late may lose its lease, and is just slow
run_us() {
  local begin=${EPOCHREALTIME/./} status=0 took
  RLOCK_REDIS="${*:2}" timeout "$PATIENCE" rlock run --key "$1" --ttl 1s -- true || status=$?
  took=$((${EPOCHREALTIME/./} - begin))
  ((status == 0 || took >= 300000)) || return "$status"
  echo "$took"
}

@test "two servers down, one killed and one frozen: a run waits for neither, the holder is undisturbed" {
  local urls healthy crippled
  read -ra urls <<<"$RLOCK_REDIS"
  starts_to_vote 4
  hold job --ttl 4s --renew-every 300ms -v
  kill -KILL "${QUORUM_PIDS[0]}"
  freeze "${QUORUM_PIDS[1]}"
  # Measured in turn with a quorum of the living servers alone, until both had a quiet moment: a busy machine delays
  # them. An idle one takes 20 ms longer; to wait for the missing answers would take 100 ms in each of three rounds.
  for _ in {1..60}; do
    run_us one "${urls[@]}" >>"$T/crippled"
    run_us other "${urls[@]:2}" >>"$T/healthy"
    healthy=$(sort -n "$T/healthy" | head -n 1)
    crippled=$(sort -n "$T/crippled" | head -n 1)
    ((crippled >= healthy + 20000)) || break
  done
  ((crippled < 2 * healthy + 150000)) || fail "$healthy us, then $crippled"
  still_renewed
  if gone "$HOLDER"; then fail "the holder was disturbed: $(<"$T/holder.err")"; fi
  try status job
  exits 0
  matches "$OUT" "job +x"
  matches "$OUT" "${QUORUM_PORTS[1]} +(no answer|unreachable)"
}

# hold_with_witness: a run of key job whose command is a witness; sets HOLDER
hold_with_witness() {
  run_witness --ttl 1s --kill-after 50ms -- stubborn child setsid double
  HOLDER=$PID
}

# stopped_since MS: the command died within the lease that was granted or renewed last before that moment
stopped_since() {
  finish "$HOLDER"
  exits 76
  silent_since $(($1 + 1000))
}

@test "three servers down: nothing new starts, the holder is stopped in time, and each server is named" {
  local n down
  hold_with_witness
  for n in 0 1 2; do kill -KILL "${QUORUM_PIDS[n]}"; done
  down=$(now_ms)
  try run --key other --ttl 1s -- touch "$T/started"
  exits 69
  contains "$ERR" "2 of 5 servers answered, 3 are needed: redis://127.0.0.1:${QUORUM_PORTS[0]}: "
  contains "$ERR" "redis://127.0.0.1:${QUORUM_PORTS[2]}: "
  [[ ! -e $T/started ]]
  stopped_since "$down"
  try status
  exits 69
  try status job
  exits 69
}

@test "a majority that freezes stops the holder in time" {
  local n down
  hold_with_witness
  for n in 0 1 2; do freeze "${QUORUM_PIDS[n]}"; done
  down=$(now_ms)
  stopped_since "$down"
}

@test "a server that restarted empty does not vote while it is young, and gets the lock back when it is old enough" {
  hold_briefly held
  for n in 0 1 2; do kill -KILL "${QUORUM_PIDS[n]}"; done
  wait_until "$PATIENCE" gone "${QUORUM_PIDS[0]}"
  for _ in {1..10}; do # on a busy machine the question may come so late that the server is old enough
    restart_server 0
    try run --key job --ttl 1s -n -- true
    [[ $ERR != *": up for 0ms, "* ]] || break
    kill -KILL "${QUORUM_PIDS[0]}"
    wait_until "$PATIENCE" gone "${QUORUM_PIDS[0]}"
  done
  exits 69
  contains "$ERR" "redis://127.0.0.1:${QUORUM_PORTS[0]}: up for 0ms, "
  finish "$HOLDER"
  exits 76
}

@test "if all servers are too young to vote the message says so" {
  try run --key job --max-lease 1h -n -- true
  exits 69
  contains "$ERR" "rlock: job: 0 of 5 servers may vote, 3 are needed: redis://127.0.0.1:${QUORUM_PORTS[0]}: up for "
  matches "$ERR" "up for [0-9.ms]+, votes again in 59m[0-9.]+s; "
  contains "$ERR" "a server up for less than --max-lease may have forgotten a lock and does not vote"
}

@test "a majority that has forgotten the lock gives it to nobody while it may still be held" {
  local n command
  for n in 3 4; do kill -KILL "${QUORUM_PIDS[n]}"; done
  hold_briefly job
  command=$(pgrep -P "$(pgrep -P "$HOLDER")")
  kill -KILL "${QUORUM_PIDS[0]}"
  for n in 0 3 4; do
    wait_until "$PATIENCE" gone "${QUORUM_PIDS[n]}"
    restart_server "$n"
  done
  try run --key job --ttl 1s -- sh -c '! kill -0 "$0" && echo "$RLOCK_FENCE"' "$command"
  exits 0
  ((OUT > FENCE)) || fail "$OUT after $FENCE"
  finish "$HOLDER"
  exits 76
}

@test "a server that has lost the lock gets it back, with its fence" {
  starts_to_vote 5 # a machine that is busy for a second must not end the lease
  hold_briefly held 5s
  kill -KILL "${QUORUM_PIDS[0]}"
  wait_until "$PATIENCE" gone "${QUORUM_PIDS[0]}"
  restart_server 0
  wait_until "$PATIENCE" has_it_back_or_is_lost "${QUORUM_PORTS[0]}"
  cli_at "${QUORUM_PORTS[1]}" DEL rlock:held >/dev/null
  wait_until "$PATIENCE" has_it_back_or_is_lost "${QUORUM_PORTS[1]}"
  if gone "$HOLDER"; then fail "the holder was disturbed: $(<"$T/holder.err")"; fi
}

has_it_back_or_is_lost() { fence_is "$1" "$FENCE" || gone "$HOLDER"; } # PORT

fence_is() { [[ $(cli_at "$1" HVALS rlock:held) == *" $2 "* ]]; } # PORT FENCE

restart_server() { # INDEX
  REDIS_SOCK=$(mktemp -d "$T/redis.XXXXXX")/sock
  wait_until "$PATIENCE" try_port "${QUORUM_PORTS[$1]}"
  QUORUM_PIDS[$1]=$REDIS_PID
  SERVERS+=("$REDIS_PID")
}

@test "200 contended rounds while servers are restarted empty: never two at once, fences ever larger" {
  local PATIENCE=60 buyer buyers=() n
  starts_to_vote 3 # a busy machine must not end the leases
  for buyer in {1..10}; do
    start "buyer$buyer" bash -c 'for n in {1..20}; do "$@" || exit; done' - \
      rlock run --key job --ttl 3s -- bash -c 'mkdir "$0/inside" || echo overlap
        echo "$RLOCK_FENCE" >>"$0/fences"; rmdir "$0/inside"' "$T"
    buyers+=("$PID")
  done
  for n in 0 1; do
    wait_until "$PATIENCE" at_least_lines $((40 * (n + 1))) "$T/fences"
    kill -KILL "${QUORUM_PIDS[n]}"
    wait_until "$PATIENCE" gone "${QUORUM_PIDS[n]}"
    restart_server "$n"
    wait_until "$PATIENCE" votes "${QUORUM_PORTS[n]}" 3
  done
  for buyer in "${buyers[@]}"; do
    finish "$buyer"
    exits 0
  done
  same "$(cat "$T"/buyer*.out)" ''
  same "$(wc -l <"$T/fences")" 200
  sort -nuc "$T/fences"
}

# far_server SECONDS: from here on the last of five servers is at that distance, and all want a password
far_server() {
  local urls port
  read -ra urls <<<"$RLOCK_REDIS"
  for port in "${QUORUM_PORTS[@]}"; do cli_at "$port" CONFIG SET requirepass secret >/dev/null; done
  export SERVER_PASSWORD=secret RLOCK_PASSWORD=secret
  start_proxy
  RLOCK_REDIS="${urls[*]:0:4} $RLOCK_REDIS"
  starts_to_vote 3
  network delay "$1"
}

# far_server_takes_part SECONDS: with a server at that distance and two near ones the lock is kept
far_server_takes_part() {
  far_server "$1"
  hold job --ttl 3s -v
  wait_until "$PATIENCE" held_at "${QUORUM_PORTS[4]}"
  wait_for_text 'answers settled' "$T/holder.err"
  still_renewed
  kill -KILL "${QUORUM_PIDS[@]:0:2}"
  still_renewed
  ! gone "$HOLDER" || fail "the holder was disturbed: $(<"$T/holder.err")"
}

@test "a server that is 80 ms away takes part" {
  far_server_takes_part 0.08
}

@test "a server that is farther away than a renewal waits for takes part, by what it answers late" {
  far_server_takes_part 0.35 # a renewal of 3 s has 0.3 s for each attempt
}

@test "a far server hears what a script takes and gives back, though its process ends at once" {
  far_server 0.06
  try acquire job --ttl 3s
  exits 0
  held_at "${QUORUM_PORTS[4]}"
  try release job --token "$OUT"
  exits 0
  ! held_at "${QUORUM_PORTS[4]}" || fail "it keeps the lock"
}

@test "a far server that does not know the script hears of the end of a run" {
  far_server 0.06
  hold job --ttl 3s
  wait_until "$PATIENCE" held_at "${QUORUM_PORTS[4]}"
  cli_at "${QUORUM_PORTS[4]}" SCRIPT FLUSH >/dev/null
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  exits 143
  ! held_at "${QUORUM_PORTS[4]}" || fail "it keeps the lock"
}

@test "a connection that has died in silence is replaced, however often the server is asked" {
  local urls
  start_quorum 3
  read -ra urls <<<"$RLOCK_REDIS"
  hold job --ttl 1s
  start_proxy
  export RLOCK_REDIS="${urls[*]:0:2} $RLOCK_REDIS"
  start waiter rlock run job --ttl 1s --redis-timeout 300ms -- true
  wait_for_text 'waiting for job' "$T/waiter.err"
  network strand
  stop "${QUORUM_PIDS[0]}" # so that the stranded one is needed
  kill "$HOLDER"
  wait_until 15 gone "$PID" # it once waited for ever
  finish "$PID"
  exits 0
}

held_at() { [[ $(cli_at "$1" EXISTS rlock:job) == 1 ]]; } # PORT

@test "leases longer than --max-lease are refused" {
  for verb in "run --key job --ttl 2s -- true" "acquire job --ttl 2s" \
    "renew job --ttl 2s --token $(printf '%032d' 1)" "run --key job -- true"; do
    # shellcheck disable=SC2086 # words
    try $verb
    exits 64
    contains "$ERR" "--max-lease"
  done
}

@test "a --min-hold longer than --max-lease is refused, since two restarts would forget it" {
  refuses 64 "--min-hold 1m is longer than --max-lease 1s" run --key job --ttl 1s --min-hold 60s -- touch "$T/ran"
  refuses 64 "--min-hold 2s is longer than --max-lease 1s" acquire job --ttl 1s --min-hold 2s
  [[ ! -e $T/ran ]]
  try run --key job --ttl 1s --min-hold 1s -- true
  exits 0
}

@test "Sentinel and Cluster URLs are refused as members, since a promoted replica may have forgotten a lock" {
  local members=$RLOCK_REDIS url verb
  for url in redis-sentinel://127.0.0.1:1/main redis-cluster://127.0.0.1:1 rediss-cluster://127.0.0.1:1; do
    export RLOCK_REDIS="$members $url"
    for verb in "run --key job --ttl 1s -- true" "acquire job --ttl 1s" status check; do
      # shellcheck disable=SC2086 # words
      refuses 64 "$url: several --redis must be single servers" $verb
    done
  done
}

@test "a held lock: -n exits with 75 at once, a wait ends, and the lock can be forced" {
  hold_briefly job
  try run --key job --ttl 1s -n -- true
  exits 75
  contains "$ERR" "held by"
  try run --key job --ttl 1s --wait 300ms -- true
  exits 75
  try release job --force
  exits 0
  matches "$OUT" '^job: evicted [^ ]+ pid [0-9]+'
  finish "$HOLDER"
  exits 76
}

@test "acquire, renew and release work by token, and a nested run re-enters" {
  local token
  token=$(rlock acquire job --ttl 1s)
  try renew job --ttl 1s --token "$token"
  exits 0
  try release job --token "$token"
  exits 0
  try release job --token "$token"
  exits 1
  try run --key job --ttl 1s -- rlock run --key job --ttl 1s -n -- echo nested
  exits 0
  same "$OUT" nested
}

# On three servers with two seats each, three holders could have two servers each.
@test "slots are refused: with several servers, more than N could hold at once" {
  try run --key job --ttl 1s --slots 2 -- touch "$T/ran"
  exits 64
  contains "$ERR" '--slots'
  [[ ! -e $T/ran ]]
  try run --key job --ttl 1s --slots 1 -- true
  exits 0
}

# ---- fences

record_at() { cli_at "$1" HGETALL rlock:job | sed -n '/^[0-9a-f]\{32\}$/{n;p;}'; } # PORT: the holder's

levels_at() { record_at "$1" | cut -d ' ' -f 10 | tr , '\n' | grep -c .; } # PORT: the number of them

has_levels() { [[ $(levels_at "$1") == "$2" ]]; } # PORT COUNT

# On a busy machine a server may lag; a renewal then gives it the fence.
@test "the fence is the largest that was granted, and a majority has it when the command starts" {
  export REDIS_CLI
  try run --key job --ttl 1s -- sh -c 'echo "$RLOCK_FENCE"
    for port; do
      $REDIS_CLI -p "$port" HGETALL rlock:job | sed -n "/^[0-9a-f]\{32\}\$/{n;p;}" | cut -d " " -f 5
      $REDIS_CLI -p "$port" HGET "{rlock:job}:meta" state | cut -d " " -f 1 >&2
    done' - "${QUORUM_PORTS[@]}"
  exits 0
  local fence=${OUT%%$'\n'*}
  (($(grep -cx "$fence" <<<"${OUT#*$'\n'}") >= 3)) || fail "$OUT"
  (($(grep -cx "$fence" <<<"$ERR") >= 3)) || fail "$ERR"
  same "$(sort -n <<<"$ERR" | sed -n 3p)" "$fence" # one that lagged may have given a larger one, which nobody has seen
}

@test "a majority has the same fence by the time that acquire prints the token" {
  local port fences=()
  try acquire job --ttl 1s
  exits 0
  for port in "${QUORUM_PORTS[@]}"; do # what a server remembers outlives the lease
    fences+=("$(cli_at "$port" HGET '{rlock:job}:meta' state | cut -d ' ' -f 1)")
  done
  (($(printf '%s\n' "${fences[@]}" | sort | uniq -c | sort -n | awk 'END {print $1}') >= 3)) || fail "${fences[*]}"
}

# forget_settling PORT: makes the server look as if it had granted the lock too late to be heard, with a larger fence
forget_settling() {
  local token text words
  token=$(cli_at "$1" HKEYS rlock:job | grep -v rlock)
  text=$(cli_at "$1" HGET rlock:job "$token")
  read -ra words <<<"${text/ settled=1/}"
  words[4]=$((words[4] + 1000000))
  cli_at "$1" HSET rlock:job "$token" "${words[*]}"
  cli_at "$1" HSET '{rlock:job}:meta' state "${words[4]} 1 0 0 0"
}

@test "a server that grants fences that leave no room for the next ones is not believed" {
  local port
  try run --key job --ttl 1s -- true # so that every server has a memory
  exits 0
  for port in "${QUORUM_PORTS[@]}"; do wait_until 3 released_at "$port"; done
  cli_at "${QUORUM_PORTS[0]}" HSET '{rlock:job}:meta' state '9007199254740980 1 0 0 0 0' >/dev/null
  cli_at "${QUORUM_PORTS[3]}" SHUTDOWN NOSAVE >/dev/null || true
  cli_at "${QUORUM_PORTS[4]}" SHUTDOWN NOSAVE >/dev/null || true # its vote would be needed
  try run --key job --ttl 1s --nonblock -- touch "$T/started"
  exits 69
  [[ ! -e $T/started ]]
  for port in "${QUORUM_PORTS[@]:1:2}"; do
    matches "$(cli_at "$port" HGET '{rlock:job}:meta' state)" '^[1-4][0-9]{15} '
  done
}

@test "a nested run has the fence of the outer one, whatever a server that was not heard has granted" {
  start holder rlock run --key job --ttl 1s -- sh -c 'echo "$RLOCK_FENCE" >"$0"
    until [ -e "$0.go" ]; do sleep 0.02; done
    rlock run --key job --ttl 1s -- sh -c "echo \$RLOCK_FENCE" && echo "$RLOCK_FENCE" && sleep 600' "$T/fence"
  HOLDER=$PID
  local port
  wait_until "$PATIENCE" test -s "$T/fence"
  for port in "${QUORUM_PORTS[@]}"; do wait_until "$PATIENCE" fence_at_is "$port" "$(<"$T/fence")"; done
  for port in "${QUORUM_PORTS[@]:3}"; do forget_settling "$port"; done
  touch "$T/fence.go"
  wait_until "$PATIENCE" at_least_lines 2 "$T/holder.out"
  same "$(sort -u "$T/holder.out")" "$(<"$T/fence")"
  for port in "${QUORUM_PORTS[@]}"; do wait_until "$PATIENCE" fence_at_is "$port" "$(<"$T/fence")"; done
  for port in "${QUORUM_PORTS[@]:3}"; do
    (($(cli_at "$port" HGET '{rlock:job}:meta' state | cut -d ' ' -f 1) > $(<"$T/fence"))) || fail "what it has granted may be granted again"
  done
}

fence_at_is() { [[ $(record_at "$1" | cut -d ' ' -f 5) == "$2" ]]; } # PORT FENCE

at_least_lines() { [[ -e $2 ]] && (($(wc -l <"$2") >= $1)); } # COUNT FILE

# ---- levels

@test "a server that has forgotten the lock learns every level, so that the inner run's end frees it nowhere" {
  start holder rlock run --key job --ttl 1s -- sh -c 'rlock run --key job --ttl 1s --renew-every 100ms -- \
    sh -c "until [ -e \$0 ]; do sleep 0.02; done" "$0"; touch "$0.ended"; exec sleep 600' "$T/go"
  HOLDER=$PID
  local port=${QUORUM_PORTS[0]}
  wait_until "$PATIENCE" has_levels "$port" 2
  cli_at "$port" DEL rlock:job >/dev/null
  wait_until "$PATIENCE" has_levels "$port" 2
  kill -KILL "${QUORUM_PIDS[0]}"
  wait_until "$PATIENCE" gone "${QUORUM_PIDS[0]}"
  restart_server 0
  wait_until "$PATIENCE" has_levels "$port" 2
  touch "$T/go"
  wait_until "$PATIENCE" test -e "$T/go.ended"
  wait_until "$PATIENCE" has_levels "$port" 1
  if gone "$HOLDER"; then fail "the holder was disturbed: $(<"$T/holder.err")"; fi
}

@test "status and log show a lock that is named twice once" {
  hold_briefly job
  try status job job --json
  exits 0
  query 'map(.key) == ["job"]'
  stop "$HOLDER"
  try log job other job
  same "$(grep -c ^job "$T/out")" 1
}

@test "a server that has forgotten the lock gets it back past the waiters in its queue" {
  hold_briefly job
  start waiter rlock run --key job --ttl 1s -- true
  local port=${QUORUM_PORTS[0]}
  wait_until "$PATIENCE" waits_at "$port" 1
  freeze "$PID"
  cli_at "$port" DEL rlock:job >/dev/null
  wait_until "$PATIENCE" fence_at_is "$port" "$FENCE"
  waits_at "$port" 1 # the lock came back while that waiter was still in the queue
  kill -CONT "$PID"
  kill -TERM "$HOLDER"
  finish "$PID"
  exits 0
}

waits_at() { [[ $(cli_at "$1" ZCARD '{rlock:job}:queue') == "$2" ]]; } # PORT COUNT

@test "a run inside in another mode does not open the lock at servers that have forgotten it" {
  local port
  starts_to_vote 4
  start holder rlock run --key job --ttl 4s -- sh -c 'rlock run --key job --shared --ttl 4s --renew-every 100ms -- \
    sh -c "touch \$0; exec sleep 600" "$0"' "$T/inside"
  HOLDER=$PID
  wait_until "$PATIENCE" test -e "$T/inside"
  for port in "${QUORUM_PORTS[@]:0:3}"; do
    cli_at "$port" DEL rlock:job >/dev/null
    wait_until "$PATIENCE" has_levels "$port" 2
    same "$(cli_at "$port" HGET rlock:job rlock)" 1
  done
  try run --key job --shared --ttl 4s -n -- true
  exits 75
  if gone "$HOLDER"; then fail "the holder was disturbed: $(<"$T/holder.err")"; fi
}

@test "a lock that was given back to a server is as old there as it is" {
  local port=${QUORUM_PORTS[0]}
  for _ in {1..5}; do # a busy machine may not keep a lease of one second for so long
    hold_briefly held
    wait_until "$PATIENCE" is_older_or_gone 2000
    cli_at "$port" DEL rlock:held >/dev/null
    wait_until "$PATIENCE" is_back_or_gone "$port"
    gone "$HOLDER" || break
  done
  local apart=$(($(acquired_at "${QUORUM_PORTS[1]}") - $(acquired_at "$port")))
  ((apart < 1000 && apart > -1000)) || fail "$apart ms apart"
}

is_back_or_gone() { fence_is "$1" "$FENCE" || gone "$HOLDER"; } # PORT

acquired_at() { cli_at "$1" HVALS rlock:held | awk 'NF > 4 {print $7}'; } # PORT

is_older_or_gone() { # MS
  local since
  since=$(acquired_at "${QUORUM_PORTS[1]}")
  gone "$HOLDER" || { [[ -n $since ]] && (($(date +%s%3N) - since > $1)); }
}

@test "--latest: a holder that gets the lock back at a server is not the newest there" {
  local port old
  start old rlock run --key job --latest --ttl 1s -- sh -c 'echo "$RLOCK_FENCE"; exec sleep 600'
  old=$PID
  wait_until "$PATIENCE" test -s "$T/old.out"
  start new rlock run --key job --latest --ttl 1s -- echo new
  wait_until "$PATIENCE" a_majority_knows 1
  for port in "${QUORUM_PORTS[@]:0:3}"; do
    cli_at "$port" DEL rlock:job >/dev/null
    wait_until "$PATIENCE" fence_at_is "$port" "$(<"$T/old.out")"
  done
  kill -TERM "$old"
  finish "$PID"
  exits 0
  same "$(<"$T/new.out")" new
}

@test "another program's key at one server is not in the way of --force" {
  cli_at "${QUORUM_PORTS[0]}" SET rlock:job theirs >/dev/null
  start holder rlock run --key job --ttl 1s -- sh -c 'echo "$RLOCK_FENCE"; exec sleep 600'
  HOLDER=$PID
  wait_until "$PATIENCE" test -s "$T/holder.out"
  try release job --force --fence "$(<"$T/holder.out")"
  exits 0
  contains "$OUT" 'job: evicted '
  finish "$HOLDER"
  exits 76
  try release job --force
  exits 0
  same "$OUT" 'job: deleted another program'\''s key (string of 6 bytes)'
}

# ---- what a success says

# learn_success ID: runs with it; sets SUCCESS to what the servers remember then. A busy one may not have heard of it.
learn_success() {
  try run --key job --ttl 1s --once "$1" -- echo ran
  same "$OUT" ran
  wait_until "$PATIENCE" knows_success "$1"
}

knows_success() { # ID
  local port
  for port in "${QUORUM_PORTS[@]}"; do
    SUCCESS=$(cli_at "$port" HGET '{rlock:job}:meta' success)
    [[ ${SUCCESS%%$'\n'*} != *" $1" ]] || return 0
  done
  return 1
}

# remember SUCCESS PORT...: makes these servers remember that
remember() {
  local port
  for port in "${@:2}"; do cli_at "$port" HSET '{rlock:job}:meta' success "$1" >/dev/null; done
}

@test "--once: a success that a single server remembers counts, unless another knows of a later one" {
  local first second
  learn_success v42
  first=$SUCCESS
  learn_success v43
  second=$SUCCESS
  remember "$second" "${QUORUM_PORTS[@]:0:4}"
  remember "$first" "${QUORUM_PORTS[4]}"
  try run --key job --ttl 1s --once v42 -- echo rolled back
  same "$OUT" 'rolled back'
  remember "$first" "${QUORUM_PORTS[@]:0:4}"
  remember "$second" "${QUORUM_PORTS[4]}"
  try run --key job --ttl 1s --once v43 -- echo again
  exits 0
  same "$OUT" ''
  remember "$first" "${QUORUM_PORTS[@]:0:3}"
  remember "$second" "${QUORUM_PORTS[@]:3}"
  try run --key job --ttl 1s --once v42 -- echo 'not while a majority has not heard of v43'
  exits 0
  same "$OUT" ''
}

@test "--attempts: what a majority remembers of an ID counts, though another server knows of a later success only" {
  local port
  learn_success v42
  for port in "${QUORUM_PORTS[@]:0:4}"; do
    cli_at "$port" HSET '{rlock:job}:meta' failures '1 1000 2000 3 v43 host' >/dev/null
  done
  try run --key job --ttl 1s --once v43 --attempts 1 -w 20s -- echo ran
  exits 75
  contains "$ERR" '1 attempt failed'
}

@test "--once: whoever is told that it is done leaves no place behind on a server that did not know" {
  local port
  learn_success v42
  remember "$SUCCESS" "${QUORUM_PORTS[@]:0:4}"
  hold_briefly job
  cli_at "${QUORUM_PORTS[4]}" HDEL '{rlock:job}:meta' success >/dev/null
  try run --key job --ttl 1s --once v42 -- echo ran
  exits 0
  same "$OUT" ''
  for port in "${QUORUM_PORTS[@]}"; do wait_until 3 waits_at "$port" 0; done # one may lag
}

# ---- takers that come at the same moment

# few_servers: as few as can be split among three takers
few_servers() {
  local urls
  read -ra urls <<<"$RLOCK_REDIS"
  export RLOCK_REDIS=${urls[*]:0:3}
}

@test "of several that come at the same moment with -n one gets the free lock" {
  local round
  few_servers
  for round in {1..30}; do
    sh -c 'for i in 1 2 3 4 5 6 7 8; do rlock run -q -n -E 0 --ttl 1s -k "$1" -- sh -c "echo >>$0" & done; wait' \
      "$T/ran$round" "job$round" 3>&-
    test -s "$T/ran$round" || fail "nobody ran in round $round"
  done
}

@test "of several that come at the same moment with --max-waiting 1 one waits" {
  local round
  few_servers
  for round in {1..20}; do
    hold_briefly "job$round"
    ((round % 2)) || kill -STOP "${QUORUM_PIDS[2]}" # the other two may then be split evenly
    start waiters sh -c 'for i in 1 2 3 4 5 6; do
      { rlock run -q --max-waiting 1 --ttl 1s -k "$1" -- true; echo $? >>"$0"; } &
    done; wait' "$T/left$round" "job$round"
    wait_until "$PATIENCE" at_least_lines 5 "$T/left$round"
    kill -CONT "${QUORUM_PIDS[2]}"
    kill -TERM "$HOLDER"
    finish "$PID"
    same "$(sort "$T/left$round" | xargs)" '0 75 75 75 75 75'
  done
}

# ---- rounds that fail

# taken_elsewhere: another program has the key on a majority
taken_elsewhere() {
  local port
  for port in "${QUORUM_PORTS[@]:0:3}"; do cli_at "$port" SET rlock:job theirs >/dev/null; done
}

@test "a grant of a minority is given back at once" {
  local port
  taken_elsewhere
  try run --key job --ttl 1s -n -- true
  exits 75
  for port in "${QUORUM_PORTS[@]:3}"; do same "$(cli_at "$port" EXISTS rlock:job)" 0; done
}

@test "a round that failed leaves nothing to be used again: each round has a token and a level of its own" {
  local port=${QUORUM_PORTS[4]} patience
  rlock run --key other --ttl 1s -- true # so that every server knows the scripts, and no question is sent twice
  taken_elsewhere
  for patience in 600ms 3s 15s; do # a busy machine asks less often
    start monitor "$REDIS_CLI" -p "$port" MONITOR
    wait_for_text OK "$T/monitor.out"
    try run --key job --ttl 1s --wait "$patience" -- true
    exits 75
    kill "$PID"
    # The words of an acquire are its token, its level, the capacity and the lease.
    sed -nE 's/.*"EVALSHA".* "([0-9a-f]{32})" "[0-9a-f]{16}" "1" "1000" .*/\1/p' "$T/monitor.out" >"$T/tokens"
    (($(wc -l <"$T/tokens") <= 3)) || break
  done
  (($(wc -l <"$T/tokens") > 3)) || fail "$(<"$T/tokens")"
  same "$(sort "$T/tokens" | uniq -d)" ''
  same "$(cli_at "$port" KEYS 'rlock:*')" ''
  same "$(cli_at "$port" ZCARD '{rlock:job}:queue')" 0
}

@test "a signal while a server gets the lock back ends the acquisition, which is given back" {
  local urls
  read -ra urls <<<"$RLOCK_REDIS"
  start_fake forgetful
  RLOCK_REDIS="${urls[0]} ${urls[1]} $RLOCK_REDIS"
  starts_to_vote 6
  for _ in {1..10}; do # it waits for that server only for a moment
    : >"$T/fake.out"
    start taker rlock acquire job --ttl 6s # which is granted for less at first, and then renewed
    wait_until "$PATIENCE" is_restoring_or_gone
    kill -TERM "$PID" || true
    finish "$PID"
    ((STATUS == 0)) || break
    RLOCK_TOKEN=$(<"$T/taker.out") try release job
  done
  exits 143
  same "$(<"$T/taker.out")" ""
  wait_until "$PATIENCE" all_free
}

is_restoring_or_gone() { grep -qsF restore "$T/fake.out" || gone "$PID"; }

# ---- who votes

# The second server is frozen, since a majority of two servers would not need the second name of the first one.
@test "a server that is named twice, by whatever names, is refused, even while it is too young to vote" {
  local one=${QUORUM_PORTS[0]} two=${QUORUM_PORTS[1]} lease
  export RLOCK_REDIS="redis://127.0.0.1:$one redis://127.0.0.1:$two redis://localhost:$one/3"
  kill -STOP "${QUORUM_PIDS[1]}"
  for lease in 1s 1h; do
    try run --key job --ttl 1s --max-lease "$lease" -- true
    exits 64
    contains "$ERR" "redis://127.0.0.1:$one and redis://localhost:$one/3 are the same server"
  done
  try acquire job --ttl 1s
  exits 64
  kill -CONT "${QUORUM_PIDS[1]}"
  same "$(cli_at "$one" EXISTS rlock:job)$(cli_at "$two" EXISTS rlock:job)$(cli_at "$one" -n 3 EXISTS rlock:job)" 000
}

all_free() { [[ $(for port in "${QUORUM_PORTS[@]}"; do cli_at "$port" EXISTS rlock:job; done | sort -u) == 0 ]]; }

# The uptime that a server reports may be up to a second too long: one that starts at the end of a second says 1 right
# after. The first server is the oldest.
@test "a server that says that it has been up for just --max-lease does not vote" {
  local port=${QUORUM_PORTS[0]} seconds
  for _ in {1..30}; do
    seconds=$(($(uptime_at "$port") + 1))
    wait_until "$PATIENCE" votes "$port" $((seconds - 1))
    try run --key job --ttl 1s --max-lease "${seconds}s" -n --redis-timeout 300ms -- true
    ! came_in_time "$port" "$seconds" || break
  done
  exits 69
  contains "$ERR" "0 of 5 servers may vote, 3 are needed: redis://127.0.0.1:$port: up for "
}

# On a busy machine the question may come when the server has become older, or its answer be late.
came_in_time() { [[ $(uptime_at "$1") == "$2" && $ERR != *'no answer in time'* ]]; } # PORT SECONDS

@test "status shows a lock as held that only a minority has lost" {
  local port
  starts_to_vote 4
  start holder rlock run --key job --ttl 4s -- sh -c 'echo "$RLOCK_FENCE"; exec sleep 600'
  wait_until "$PATIENCE" test -s "$T/holder.out" # then a majority has agreed on the fence
  for port in "${QUORUM_PORTS[@]:0:2}"; do cli_at "$port" DEL rlock:job >/dev/null; done
  try status job --json
  query '.[0].state == "held" and (.[0].holders | length) == 1'
}

# ---- who waits

@test "a writer is served while readers come and go" {
  local n pid readers=()
  for n in 1 2 3; do
    start "reader$n" sh -c 'while [ ! -e "$0.stop" ]; do
      rlock run -q --key job --ttl 1s --shared -- sh -c "echo \$RLOCK_FENCE >>\$0; sleep 0.3" "$0" || exit
    done' "$T/reads"
    readers+=("$PID")
  done
  wait_until "$PATIENCE" at_least_lines 6 "$T/reads"
  start writer rlock run --key job --ttl 1s --wait 20s -- sh -c 'wc -l <"$0"' "$T/reads"
  wait_for_text "waiting for job" "$T/writer.err"
  n=$(wc -l <"$T/reads")
  finish "$PID"
  exits 0
  touch "$T/reads.stop"
  for pid in "${readers[@]}"; do finish "$pid"; done
  echo "# $(($(<"$T/writer.out") - n)) readers began while it waited" >&3
  (($(<"$T/writer.out") - n <= 6)) || fail "readers passed it"
}

@test "waiters are served in the order of their arrival" {
  local n waiters=()
  hold_briefly job
  for n in 1 2 3 4 5 6; do
    start "waiter$n" rlock run -q --key job --ttl 1s -- sh -c 'echo "$1" >>"$0"' "$T/served" "$n"
    waiters+=("$PID")
    wait_until "$PATIENCE" a_majority_knows "$n"
  done
  kill -TERM "$HOLDER"
  for n in "${waiters[@]}"; do
    finish "$n"
    exits 0
  done
  same "$(xargs <"$T/served")" '1 2 3 4 5 6'
}

a_majority_knows() { # COUNT of waiters
  local port count=0
  for port in "${QUORUM_PORTS[@]}"; do ! waits_at "$port" "$1" || count=$((count + 1)); done
  ((count >= 3))
}

@test "a waiter that gives up, or is killed, leaves no place behind on any server" {
  hold_briefly job
  try run --key job --ttl 1s --wait 300ms -- true
  exits 75
  for port in "${QUORUM_PORTS[@]}"; do waits_at "$port" 0; done
  start waiter rlock run -q --key job --ttl 1s -- true
  wait_until "$PATIENCE" a_majority_knows 1
  kill -KILL "$PID"
  finish "$PID"
  try run --key job --ttl 1s -n -- true
  exits 75
  wait_until "$PATIENCE" nobody_waits
}

nobody_waits() { # a newcomer's question removes dead waiters
  try run --key job --ttl 1s -n -- true
  local port
  for port in "${QUORUM_PORTS[@]}"; do waits_at "$port" 0 || return 1; done
}
