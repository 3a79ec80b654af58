# rlock run --once and --once-per: a fleet does the work once, however many machines try and whichever of them fail.

load ../support/helpers
load ../support/servers

runs() { wc -l <"$T/runs"; }

# Fails until it has been tried as often as its argument says.
make_migration() {
  cat >"$T/bin/migrate.sh" <<'E2'
#!/bin/sh
echo "$RLOCK_FENCE" >>"$T/runs"
[ "$(wc -l <"$T/runs")" -ge "$1" ]
E2
  chmod +x "$T/bin/migrate.sh"
  export T
  : >"$T/runs"
}

@test "work that is done is not done again: 0, with one line, or none with -q" {
  make_migration
  try run --key schema --once v42 -- migrate.sh 1
  exits 0
  try run --key schema --once v42 -- migrate.sh 1
  exits 0
  same "$OUT" ''
  matches "$ERR" "^rlock: schema: v42 was done by $(id -un)@$(uname -n) [0-9.]+m?s ago$"
  try run --key schema --once v42 -q --report "$T/report" -- migrate.sh 1
  exits 0
  same "$ERR" ''
  same "$(jq -c '[.outcome, .exit_status, .fence, .key]' "$T/report")" '["done",0,null,"schema"]'
  same "$(runs)" 1
  try run --key schema --once v43 -- migrate.sh 1
  exits 0
  same "$(runs)" 2
  try run --key schema --once-per 1h -- migrate.sh 1
  exits 0
  matches "$ERR" "^rlock: schema: done by $(id -un)@$(uname -n) [0-9.]+m?s ago$"
  same "$(runs)" 2
}

@test "work that failed does not count as done" {
  make_migration
  try run --key schema --once v42 -- migrate.sh 2
  exits 1
  try run --key schema --once v42 -- migrate.sh 2
  exits 0
  same "$(runs)" 2
}

@test "work that was told to stop does not count as done, though it exits with 0" {
  local signal
  for signal in TERM INT HUP QUIT; do
    start job rlock run schema --once v42 --report "$T/report.json" -- \
      sh -c 'trap "kill $!; exit 0" TERM INT HUP QUIT; sleep 600 & echo ready; wait'
    wait_for_text ready "$T/job.out"
    kill "-$signal" "$PID"
    finish "$PID"
    exits 0
    same "$(jq -r .outcome "$T/report.json")" interrupted
    try log schema -n 1 --json
    query '.[0].end == "interrupted"'
  done
  try run schema --once v42 -- echo ran
  same "$OUT" ran
}

@test "ten replicas start together, the first fails, the second succeeds: eight never run it" {
  local i pids=() failed=0 waited
  make_migration
  for i in {0..9}; do
    start "replica$i" rlock run --key schema --once v42 -- migrate.sh 2
    pids+=("$PID")
  done
  for i in "${pids[@]}"; do
    finish "$i"
    ((STATUS == 0)) || ((++failed))
  done
  same "$failed" 1
  same "$(runs)" 2
  waited=$(cat "$T"/replica*.err | grep -cE '^rlock: schema: v42 was done by .* ago$')
  same "$waited" 8
}

@test "a waiter leaves as soon as the work is done, not when its turn comes" {
  local i pids=()
  start first rlock run --key schema --once v42 -- sh -c 'until [ -e "$0" ]; do sleep 0.02; done' "$T/go"
  wait_held schema
  for i in {0..4}; do
    start "waiter$i" rlock run --key schema --once v42 -- sh -c 'echo never'
    pids+=("$PID")
  done
  wait_until "$PATIENCE" waiting 5 schema
  start other rlock run --key schema --once v43 -- true # of another ID: it keeps its place
  pids+=("$PID")
  touch "$T/go"
  for i in "${pids[@]}"; do
    finish "$i"
    exits 0
  done
  same "$(cat "$T"/waiter*.out)" ''
  same "$(grep -c 'v42 was done by' "$T"/waiter*.err | grep -c ':1$')" 5
}

@test "when a machine dies in the middle, the next one does the work" {
  start dying rlock run --key schema --once v42 --ttl 1 -- sleep 600
  wait_held schema
  kill -KILL "$PID"
  try run --key schema --once v42 -- echo ran
  exits 0
  same "$OUT" ran
}

# pass MILLISECONDS: makes what Redis remembers that much older
pass() {
  cli EVAL "local granted, ended, rest = redis.call('HGET', KEYS[1], 'success'):match('^(%d+) (%d+) (.*)\$')
    redis.call('HSET', KEYS[1], 'success', string.format('%.0f %.0f %s', granted - ARGV[1], ended - ARGV[1], rest))" \
    1 '{rlock:nightly}:meta' "$1" >/dev/null
}

@test "cron on three machines, whose clocks are 0, 20 s and 3 min late, for thirty days: one run a day" {
  local day machine late=(0 20000 160000)
  : >"$T/runs"
  for day in {1..30}; do
    for machine in 0 1 2; do
      ((day == 1 && machine == 0)) || pass "${late[machine]}"
      ((machine == 0 && day > 10 && day < 18)) && continue # it is dead for a week
      rlock run --key nightly --once-per 20h -q -- sh -c "echo $day >>$T/runs"
    done
    pass $((86400000 - 180000))
  done
  same "$(cat "$T/runs")" "$(seq 30)"
}

@test "a run nested in its own lock ignores both options, but not for another ID" {
  try run --key schema --once v42 -- rlock run --key schema --once v42 -- echo inner
  exits 0
  same "$OUT" inner
  try run --key schema --once v43 -- rlock run --key schema -- echo inner
  exits 0
  same "$OUT" inner
  try run --key schema --once v44 -- rlock run --key schema --once v45 -- echo inner
  exits 64
  same "$OUT" ''
}

@test "--slots 1 means exclusive, so it goes with --once and does not take it back" {
  try run --key a --slots 1 --once v1 -- echo worked
  exits 0
  same "$OUT" worked
  printf 'once = v1\n' >"$T/conf"
  try run --config "$T/conf" --key a --slots 1 -- echo again
  exits 0
  same "$OUT" ''
}

@test "--once is for exclusive locks, and an ID has up to 128 bytes" {
  refuses 64 --shared run --key a --shared --once v1 -- true
  refuses 64 --slots run --key a --slots 2 --once-per 1h -- true
  refuses 64 --once-per run --key a --once v1 --once-per 1h -- true
  refuses 64 --once run --key a --once '' -- true
  refuses 64 --once run --key a --once "$(printf '%129s' x)" -- true
  refuses 64 --once-per run --key a --once-per 31d -- true
  try run --key a --once "$(printf '%128s' '% =,')" -- true
  exits 0
  try run --key a --once "$(printf '%128s' '% =,')" -- echo again
  exits 0
  same "$OUT" ''
}

@test "with a quorum it is enough that one server knows of the success" {
  local port
  start_quorum 3
  try run --ttl 1s --key schema --once v42 -- echo ran
  exits 0
  same "$OUT" ran
  for port in "${QUORUM_PORTS[@]:1}"; do "$REDIS_CLI" -p "$port" FLUSHALL >/dev/null; done
  try run --ttl 1s --key schema --once v42 -- echo ran
  exits 0
  same "$OUT" ''
  contains "$ERR" 'schema: v42 was done by '
}
