# rlock-protocol(7) says enough to write a client: one in another language, written from that page, shares locks with
# rlock.

load ../support/helpers

CLIENT=$BATS_TEST_DIRNAME/../support/client.py
SCRIPTS=$BATS_TEST_DIRNAME/../../src/lock
MANUAL=$BATS_TEST_DIRNAME/../../man/rlock-protocol.7

setup() {
  /usr/bin/python3 -c 'import redis' 2>/dev/null || skip "no redis-py: install python3-redis"
  hermetic
  start_redis
}

# python_client NAME COMMAND...: runs the command under the lock `job`, in the background; sets PID
python_client() {
  local name=$1
  shift
  start "$name" /usr/bin/python3 "$CLIENT" "$REDIS_SOCK" rlock job "$@"
}

shows() { rlock status job | grep -q -- "$1"; } # TEXT
waiters() { cli HVALS '{rlock:job}:waiters'; } # each with the time of its last question
changed() { [[ $(waiters) != "$1" ]]; } # BEFORE

@test "the exchange that the page shows takes, renews and releases a lock" {
  redis-cli() { command redis-cli -s "$REDIS_SOCK" "$@"; }
  sed -n '/^\.\\" test: exchange$/,/^\.Ed$/ { /^\./d; s/\\-/-/g; s/\\(aq/'\''/g; p }' "$MANUAL" >"$T/exchange"
  # shellcheck source=/dev/null
  OUT=$(source "$T/exchange")
  matches "$OUT" $'^granted\n[0-9]{16}\n0\n5000\nextended\n30000\n1\nreleased$'
  same "$(rlock log backup --json | jq -c '.[] | [.end, .exit_status, .holder, .pid]')" '["exited",0,"me",812]'
}

@test "the other client excludes rlock, and rlock gets the lock when it has released it" {
  python_client other sh -c 'echo "$FENCE" >>"$0"; until [ -e "$0.end" ]; do sleep 0.05; done' "$T/fences"
  wait_until "$PATIENCE" test -s "$T/fences"
  try run -k job -n -- true
  exits 75
  start ours rlock run -k job -- sh -c 'echo "$RLOCK_FENCE" >>"$0"' "$T/fences"
  wait_until "$PATIENCE" waiting 1
  touch "$T/fences.end"
  finish "$PID"
  exits 0
  same "$(wc -l <"$T/fences")" 2
  sort -nc "$T/fences"
}

@test "rlock excludes the other client, and hands it the lock in its turn" {
  local first second
  hold job
  python_client first sh -c 'echo "first $FENCE" >>"$0"' "$T/order"
  first=$PID
  wait_until "$PATIENCE" waiting 1
  start second rlock run -k job -- sh -c 'echo "second $RLOCK_FENCE" >>"$0"' "$T/order"
  second=$PID
  wait_until "$PATIENCE" waiting 2
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  finish "$first"
  exits 0
  finish "$second"
  exits 0
  same "$(cut -d' ' -f1 "$T/order" | tr '\n' ' ')" 'first second '
  sort -nc -k2 "$T/order"
}

@test "rlock hands the lock to the other client, which takes the message for the grant, but not a forged one" {
  local before asked other channel
  hold job
  python_client other sh -c 'echo "$FENCE" >"$0"' "$T/fence"
  other=$PID
  wait_until "$PATIENCE" waiting 1
  before=$(waiters)
  read -r _ asked _ <<<"$before"
  for channel in $(cli PUBSUB CHANNELS '*:wake:*'); do
    cli PUBLISH "$channel" "granted 7 0 5000 $asked 0 $(printf '%040d' 7)"
  done
  wait_until "$PATIENCE" changed "$before"
  kill -STOP "$other" # it hears of it late, and must not count its lease from then
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  sleep 1
  kill -CONT "$other"
  finish "$other"
  exits 0
  try log job --json
  query --argjson fence "$(<"$T/fence")" 'map(.fence == $fence) == [false, true]'
  matches "$(<"$T/other.err")" '^handed over, ([0-9]+) ms left$'
  ((BASH_REMATCH[1] < 5000 * 99 / 100 - 1000)) || fail "$(<"$T/other.err")"
}

@test "the other client renews the lock for longer than its lease" {
  export TTL_MS=1000
  python_client other sh -c ': >"$0"; until [ -e "$0.end" ]; do sleep 0.05; done' "$T/begun"
  wait_until "$PATIENCE" test -e "$T/begun"
  try run -k job -w 2.5 -- true
  exits 75
  touch "$T/begun.end"
  finish "$PID"
  exits 0
}

@test "release --force makes the other client stop its command, and waits for that" {
  python_client other sh -c 'echo "$$" >"$0"; exec sleep 600' "$T/command"
  wait_until "$PATIENCE" test -s "$T/command"
  try release job --force
  exits 0
  gone "$(<"$T/command")"
  contains "$OUT" 'evicted python = py pid '
  contains "$OUT" ', gone after '
  try log job --json
  query '.[0].end == "evicted"'
}

@test "status and log show the other client as it described itself" {
  python_client other sleep 600
  wait_until "$PATIENCE" shows python
  try status job --json
  query '.[0].holders[0] | .holder == "python = py" and .command == "sleep 600" and .kept'
  query '.[0].holders[0].note == "evict=forced,by nobody"'
  pkill -KILL -P "$PID" sleep
  finish "$PID"
  exits 247 # Python's status for a command that was killed
  try log job --json
  query '.[0] | .holder == "python = py" and .end == "signalled" and .signal == 9'
}

@test "the page describes every script, and every extra that the scripts read" {
  local verb word
  for verb in "$SCRIPTS"/*.lua; do
    grep -q '^-- ARGV' "$verb" || continue
    verb=$(basename "$verb" .lua)
    grep -qE "Cm $verb\b" "$MANUAL" || fail "$verb is not described"
  done
  for word in $(grep -ohE "extra\([a-z_.]+, '[a-z]+'" "$SCRIPTS"/*.lua | grep -oE "[a-z]+'$" | tr -d "'" | sort -u); do
    grep -qF "Li $word=" "$MANUAL" || fail "$word= is not described"
  done
}
