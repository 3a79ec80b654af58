# Several --redis: independent servers, of which a majority decides.

load helpers
load servers

setup() {
  hermetic
  start_quorum 5
}

exists() { # KEY: on a majority
  local port count=0
  for port in "${QUORUM_PORTS[@]}"; do count=$((count + $(cli_at "$port" EXISTS "$1"))); done
  ((count >= 3))
}

fast() { try run --key "$1" --ttl 1s -- true; }

# hold_briefly KEY: a lease of 1 s, which is all that --max-lease allows, on a loaded machine too
hold_briefly() { hold "$1" --ttl 1s --kill-after 50ms; }

# A STOPped server that a test would leave could not end.
freeze() { kill -STOP "$1"; }

@test "all of them have the lock while it is held, with one fence, and none afterwards" {
  local port
  try run --key job --ttl 1s -- sh -c 'echo "$RLOCK_FENCE"; rlock status job --json'
  exits 0
  same "$(sed 1d <<<"$OUT" | jq -c '.[0] | [.state, .holders[0].fence, (.servers | map(.state) | unique)]')" \
    "[\"held\",$(head -n 1 <<<"$OUT"),[\"held\"]]"
  # A server that lagged may learn of the lock after its release: there the lease ends it.
  for port in "${QUORUM_PORTS[@]}"; do wait_until 3 released_at "$port"; done
}

released_at() { [[ $(cli_at "$1" EXISTS rlock:job) == 0 ]]; } # PORT

@test "two down, one killed and one frozen: nearly as fast, the holder undisturbed" {
  local healthy n
  hold_briefly held
  healthy=$(for n in {1..5}; do fast job; echo "$TOOK"; done | sort -n | sed -n 3p)
  kill -KILL "${QUORUM_PIDS[0]}"
  freeze "${QUORUM_PIDS[1]}"
  for n in {1..5}; do
    fast job
    exits 0
    echo "$TOOK" >>"$T/times"
  done
  (($(sort -n "$T/times" | sed -n 3p) <= 3 * healthy + 50)) || fail "$healthy, then" "$(<"$T/times")"
  sleep 2 # two leases
  if gone "$HOLDER"; then fail "the holder was disturbed"; fi
  try status held
  exits 0
  matches "$OUT" "held +held"
  matches "$OUT" "${QUORUM_PORTS[1]} +(no answer|unreachable)"
}

@test "three down: nothing new starts, what is held is stopped in time, and each server is named" {
  local n
  hold_briefly held
  for n in 0 1 2; do kill -KILL "${QUORUM_PIDS[n]}"; done
  try run --key job --ttl 1s -- touch "$T/started"
  exits 69
  contains "$ERR" "2 of 5 servers answered, 3 are needed: redis://127.0.0.1:${QUORUM_PORTS[0]}: "
  contains "$ERR" "redis://127.0.0.1:${QUORUM_PORTS[2]}: "
  [[ ! -e $T/started ]]
  finish "$HOLDER"
  exits 76
  try status
  exits 69
  try status held
  exits 69
}

@test "a majority that freezes stops the holder in time" {
  local n
  hold_briefly held
  for n in 0 1 2; do freeze "${QUORUM_PIDS[n]}"; done
  finish "$HOLDER"
  exits 76
}

@test "a server restarted empty does not vote while young, and is brought back when it is old enough" {
  hold_briefly held
  kill -KILL "${QUORUM_PIDS[0]}"
  wait_until "$PATIENCE" gone "${QUORUM_PIDS[0]}"
  restart_server 0
  for n in 1 2; do kill -KILL "${QUORUM_PIDS[n]}"; done
  try run --key job --ttl 1s -n --timeout 100ms -- true
  exits 69
  contains "$ERR" "redis://127.0.0.1:${QUORUM_PORTS[0]}: up for 0ms, which is less than --max-lease"
  finish "$HOLDER"
  exits 76
}

@test "a server that missed out is given the lock again, and the fence" {
  hold_briefly held
  fence=$(cli_at "${QUORUM_PORTS[0]}" HGET '{rlock:held}:meta' floor)
  kill -KILL "${QUORUM_PIDS[0]}"
  wait_until "$PATIENCE" gone "${QUORUM_PIDS[0]}"
  restart_server 0
  wait_until "$PATIENCE" fence_is "${QUORUM_PORTS[0]}" "$fence"
  cli_at "${QUORUM_PORTS[1]}" DEL rlock:held >/dev/null
  wait_until "$PATIENCE" fence_is "${QUORUM_PORTS[1]}" "$fence"
  if gone "$HOLDER"; then fail "the holder was disturbed"; fi
}

fence_is() { [[ $(cli_at "$1" HVALS rlock:held) == *" $2 "* ]]; } # PORT FENCE

restart_server() { # INDEX
  REDIS_SOCK=$(mktemp -d "$T/redis.XXX")/sock
  wait_until "$PATIENCE" try_port "${QUORUM_PORTS[$1]}"
  QUORUM_PIDS[$1]=$REDIS_PID
  SERVERS+=("$REDIS_PID")
}

@test "200 contended rounds while servers are restarted empty: never two at once, fences ever larger" {
  local buyer buyers=() n
  echo 0 >"$T/owner"
  for buyer in {1..10}; do
    # shellcheck disable=SC2016 # the command's shell expands it
    start "buyer$buyer" bash -c 'for n in {1..20}; do "$@" || exit; done' - \
      rlock run --key job --ttl 1s -- bash -c 'mkdir "$0/inside" || echo overlap
        echo "$RLOCK_FENCE" >>"$0/fences"; rmdir "$0/inside"' "$T"
    buyers+=("$PID")
  done
  for n in 0 1; do
    wait_until "$PATIENCE" at_least_lines $((40 * (n + 1)))
    kill -KILL "${QUORUM_PIDS[n]}"
    wait_until "$PATIENCE" gone "${QUORUM_PIDS[n]}"
    restart_server "$n"
    wait_until "$PATIENCE" votes "${QUORUM_PORTS[n]}"
  done
  for buyer in "${buyers[@]}"; do
    wait_until 60 gone "$buyer"
    finish "$buyer"
    exits 0
  done
  same "$(cat "$T"/buyer*.out)" ''
  same "$(wc -l <"$T/fences")" 200
  sort -nuc "$T/fences"
}

at_least_lines() { (($(wc -l 2>/dev/null <"$T/fences") >= $1)); }

@test "leases longer than --max-lease are refused" {
  for verb in "run --key job --ttl 2s -- true" "acquire job --ttl 2s" \
    "renew job --ttl 2s --token $(printf '%032d' 1)" "run --key job -- true"; do
    # shellcheck disable=SC2086 # words
    try $verb
    exits 64
    contains "$ERR" "--max-lease"
  done
}

@test "held: 75 at once with -n, a wait that ends, and a forced release" {
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

@test "acquire, renew and release by token; a nested run re-enters" {
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
