# rlock acquire: what it prints, what it leaves in Redis, and what it does when somebody else has the lock.

load ../support/helpers
load ../support/supervision

lease() { cli PTTL "rlock:$1"; }

@test "acquire prints the token and a newline, nothing else" {
  try acquire job
  exits 0
  same "$ERR" ''
  matches "$OUT" '^[0-9a-f]{32}$'
  same "$(wc -c <"$T/out")" 33
}

@test "the lock is a hash with the capacity and one record per holder, gone when the lease ends" {
  try acquire job
  same "$(cli TYPE rlock:job)" hash
  same "$(cli HGET rlock:job rlock)" 1
  same "$(cli HLEN rlock:job)" 2
  same "$(cli HEXISTS rlock:job "$OUT")" 1
  (($(lease job) > 25000 && $(lease job) <= 30000)) || fail "$(lease job)"
}

@test "the lock and its expiry are set by one script and confirmed by another, and by nothing else" {
  try acquire other # from now on the server knows the scripts
  start monitor "$REDIS_CLI" -s "$REDIS_SOCK" MONITOR
  wait_for_text OK "$T/monitor.out"
  try acquire job
  exits 0
  cli ECHO finished
  wait_for_text finished "$T/monitor.out"
  same "$(grep -c '"EVALSHA"' "$T/monitor.out")" 2
  grep -q 'lua\] "HSET"' "$T/monitor.out"
  grep -q 'lua\] "PEXPIREAT"' "$T/monitor.out"
  same "$(grep rlock:job "$T/monitor.out" | grep -cvE 'lua\]|"EVALSHA"|SUBSCRIBE"')" 0
}

@test "tokens differ, and fences rise over release and expiry and stay below 2^53" {
  local fence last=0 token previous=
  for _ in {1..5}; do
    try acquire job --ttl 500ms --output json
    exits 0
    fence=$(jq .fence "$T/out") token=$(jq -r .token "$T/out")
    ((fence > last && fence < 1 << 53)) || fail "$fence after $last"
    [[ $token != "$previous" ]] || fail "the same token twice"
    last=$fence previous=$token
    ((fence % 2)) || RLOCK_TOKEN=$token try release job
    wait_until 5 absent rlock:job
  done
}

@test "--output json prints the facts, and numbers as numbers" {
  try acquire job --ttl 20 --output json
  exits 0
  same "$(jq -c keys "$T/out")" '["expires_at","fence","key","slot","token","ttl_ms","waited_ms"]'
  query '.key == "job" and .ttl_ms == 20000 and .fence > 0 and .slot == null and .waited_ms < 5000'
  query '(.expires_at | sub("\\.[0-9]+"; "") | fromdate) - now | . > 10 and . < 21'
}

@test "--output json: expires_at is no later than the lease on the server, however late the answer comes" {
  start_proxy
  network delay 0.5
  try acquire job --ttl 20 --output json
  exits 0
  (($(date -d "$(jq -r .expires_at "$T/out")" +%s%3N) <= $(cli PEXPIRETIME rlock:job)))
}

@test "--output shell is safe for eval, whatever the name of the lock" {
  local name="it's; touch $T/ran; \$(touch $T/ran) \"\\"
  try acquire --key "$name" --output shell
  exits 0
  (
    eval "$OUT"
    same "$RLOCK_KEY" "$name"
    matches "$RLOCK_TOKEN" '^[0-9a-f]{32}$'
    matches "$RLOCK_FENCE" '^[0-9]+$'
    rlock release # the variables were exported
  )
  [[ ! -e $T/ran ]]
  absent "rlock:$name"
}

@test "--output shell tells the lease and the slot, and none of another lock's" {
  (
    eval "$(rlock acquire job --slots 3 --ttl 9 --output shell)"
    same "$RLOCK_SLOT $RLOCK_TTL_MS" '0 9000'
    eval "$(rlock acquire other --output shell)"
    same "${RLOCK_SLOT-none} $RLOCK_TTL_MS" 'none 30000'
  )
}

@test "after eval of --output shell, rlock run of the same lock runs inside it, and its renewals keep the lease" {
  (
    eval "$(rlock acquire job --ttl 3s --output shell)"
    try run --key job --ttl 3s -w 2s -- sh -c 'sleep 4; rlock renew && echo held'
    exits 0
    same "$OUT" held
    exists rlock:job
    eval "$(rlock acquire other --output shell)"
    try run --key job -n -- echo in
    same "$OUT" in
    rlock release other && rlock release job
    absent rlock:job
  )
}

@test "a script that has taken two locks renews and releases each by its name alone" {
  (
    eval "$(rlock acquire job --output shell)"
    eval "$(rlock acquire other --output shell)"
    try renew job --ttl 5m
    exits 0
    try status job --json
    query '.[0].holders[0].lease_ms > 60000'
    try release job
    exits 0
    absent rlock:job
    exists rlock:other
    try release job
    exits 1
    same "$ERR" 'rlock: job is not held by this token: it was released already'
    rlock release
    absent rlock:other
  )
}

@test "a script is told that RLOCK_TOKEN belongs to another lock" {
  (
    eval "$(rlock acquire other --output shell)"
    rlock acquire job >"$T/token"
    for subcommand in release renew; do
      try "$subcommand" job
      exits 1
      same "$ERR" 'rlock: job is not held by RLOCK_TOKEN, which belongs to other; write --token'
    done
    rlock release job --token - <"$T/token"
    absent rlock:job
  )
}

@test "a RLOCK_TOKEN that was set by hand outranks RLOCK_HELD" {
  (
    eval "$(rlock acquire job --output shell)"
    eval "$(rlock acquire other --output shell)"
    rlock release job
    token=$(rlock acquire job)
    RLOCK_TOKEN=$token try release job
    exits 0
    absent rlock:job
  )
}

@test "a token of RLOCK_HELD counts only for the servers and the prefix that it was taken with" {
  (
    eval "$(rlock acquire job --output shell)"
    eval "$(rlock acquire other --output shell)"
    try release job --prefix theirs:
    exits 1
    contains "$ERR" 'job is not held by RLOCK_TOKEN, which belongs to other'
    exists rlock:job
  )
}

@test "after a run inside it a lock that a script has taken lasts as long as the run's last renewal made it" {
  (
    eval "$(rlock acquire job --ttl 2s --output shell)"
    try run --key job -- sleep 3
    exits 0
    try renew
    exits 0
  )
}

@test "--output shell names the servers, also where the environment does" {
  try acquire job --output shell
  contains "$OUT" " RLOCK_REDIS='$RLOCK_REDIS'"
}

@test "--output shell does not take a password away, and prints none" {
  cli CONFIG SET requirepass hunter2
  (
    export RLOCK_REDIS=redis://:hunter2@127.0.0.1:$REDIS_PORT
    try acquire job --ttl 20s --output shell
    [[ $OUT != *hunter2* ]]
    eval "$OUT"
    try run --key job -n -- rlock release other-lock
    exits 77 # the command gets no password
    try run --key job -n -- echo in
    same "$OUT" in
    try release
    exits 0
  )
  unset RLOCK_REDIS
  try acquire job --redis "redis://:hunter2@127.0.0.1:$REDIS_PORT" --output shell
  contains "$OUT" "RLOCK_REDIS='redis://127.0.0.1:$REDIS_PORT'"
}

@test "--output shell: whatever fails, eval gets the exit status" {
  local setting
  for setting in RLOCK_REDIS_TIMEOUT=zz RLOCK_CONFIG=/nonexistent RLOCK_REDIS=redis://127.0.0.1:1 RLOCK_REDIS=zz; do
    STATUS=0
    OUT=$(env "$setting" sh -c 'eval "$(rlock acquire job --output shell)" || exit; echo without a lock' 2>/dev/null) || STATUS=$?
    ((STATUS >= 64)) || fail "$setting: status $STATUS"
    same "$OUT" ''
  done
  for setting in --nonsense --ttl=zz '-w 1 -n' 'job job2'; do
    # shellcheck disable=SC2086 # several words
    try acquire job --output=shell $setting
    exits 64
    same "$OUT" '(exit 64);'
  done
  try acquire --output shell
  same "$OUT" '(exit 64);'
  local word
  for word in shel shells sh3ll; do
    try acquire job --output "$word"
    exits 64
    same "$OUT" '(exit 64);'
  done
  try acquire job --output json --nonsense
  same "$STATUS $OUT" '64 '
  hold job
  try acquire job -n --output shell
  exits 75
  same "$OUT" '(exit 75);'
  # shellcheck disable=SC2016,SC2086
  for shell in bash sh; do # where the quotes are forgotten
    try_without_quotes='eval $(rlock acquire job -n -q --output shell || echo exit $?); echo went on'
    STATUS=0
    OUT=$($shell -c "$try_without_quotes" 2>&1) || STATUS=$?
    same "$STATUS $OUT" '75 '
  done
  try run --key other -- echo acquire --output shell
  same "$OUT" 'acquire --output shell'
}

@test "a token that does not fit into a limited file: the lock is given back, and rlock lives to say so" {
  STATUS=0
  : >"$T/token"
  ERR=$(ulimit -f 0; exec rlock acquire job 2>&1 >"$T/token" 3>&- 4>&-) || STATUS=$?
  exits 71
  contains "$ERR" 'File too large'
  absent rlock:job
}

@test "--output takes token, shell and json, and nothing else" {
  local value
  for value in '' xml JSON 'json ' $'\xff'; do refuses 64 --output acquire job --output="$value"; done
}

@test "the holder that messages name has a PID only while that process lives: --hold-pid, not a plain acquire" {
  local keeper
  start script sleep 600
  wait_until "$PATIENCE" grep -qx sleep "/proc/$PID/comm" # it has been executed
  try acquire job --hold-pid "$PID"
  keeper=$(rlock status job --json | jq '.[0].holders[0].pid')
  try acquire job -n
  contains "$ERR" "held by $(id -un)@$(uname -n) pid $keeper \"sleep\" for "
  try acquire other
  try acquire other -w 100ms
  exits 75
  same "$(grep -c ' (no process) "[^"]*" for ' <<<"$ERR")" 2 # the waiting line, and the last one
  echo 'rlock acquire "$KEY"; :' >"$T/deploy.sh"
  KEY=plain bash -euo pipefail "$T/deploy.sh" # as CI systems start a script
  KEY=without bash --noprofile --rcfile /dev/null -eo pipefail "$T/deploy.sh"
  same "$(rlock status plain without --json | jq -c '[.[].holders[].command]')" '["deploy.sh","deploy.sh"]'
  start waiter rlock acquire other
  wait_for_text 'waiting for other' "$T/waiter.err"
  try status other --json
  query --argjson pid "$PID" '.[0].waiters[0].pid == $pid'
}

@test "-n fails at once while the lock is held, names the holder and changes nothing" {
  local before
  try acquire job --holder deploy@web3 --note weekly
  before=$(dump rlock:job)
  try acquire job -n
  exits 75
  same "$OUT" ''
  matches "$ERR" '^rlock: .*job.*held by deploy@web3 \(no process\) "[^"]+" \(weekly\) for [^ ]+, lease [0-9]+s left$'
  same "$(dump rlock:job)" "$before"
  try acquire job -n -E 7
  exits 7
  try acquire job -n -E 0
  exits 0
  same "$OUT" ''
}

@test "-w gives up after its time, and -w 0 is -n" {
  try acquire job
  quick 500 75 acquire job -w 0
  try acquire job -w 700ms
  exits 75
  ((TOOK >= 700 && TOOK < 5000)) || fail "took $TOOK ms"
  same "$OUT" ''
  contains "$ERR" 'held by'
}

@test "a waiter gets the lock once it is released" {
  try acquire job
  start waiter rlock acquire job
  wait_for_text 'waiting for job' "$T/waiter.err"
  RLOCK_TOKEN=$OUT try release job
  exits 0
  finish "$PID"
  exits 0
  same "$(cli HEXISTS rlock:job "$(<"$T/waiter.out")")" 1
}

@test "a waiter gets the lock when the lease ends, and not before" {
  local begin
  begin=$(now_ms)
  try acquire job --ttl 1
  try acquire job -w 10
  exits 0
  (($(now_ms) - begin >= 990)) || fail "after $(($(now_ms) - begin)) ms" # the clock here ticks every 10 ms
}

@test "a token that cannot be printed leaves no lock behind" {
  local status=0
  rlock acquire job >/dev/full 2>"$T/err" || status=$?
  ((status != 0))
  matches "$(<"$T/err")" '^rlock: .*No space left'
  absent rlock:job
  status=0
  rlock acquire job >&- 2>"$T/err" || status=$?
  ((status != 0))
  matches "$(<"$T/err")" '^rlock: '
  absent rlock:job
}

@test "a token that cannot be printed is the error, even if the lock cannot be given back" {
  mkfifo "$T/pipe"
  exec 9<>"$T/pipe"
  dd if=/dev/zero of="$T/pipe" bs=4096 oflag=nonblock 2>/dev/null || true # fills it
  start acquirer bash -c 'exec rlock acquire job --verbose >"$1" 9>&-' - "$T/pipe"
  wait_for_text 'holding job' "$T/acquirer.err"
  stop_redis
  exec 9>&-
  finish "$PID"
  exits 71
  contains "$(<"$T/acquirer.err")" 'cannot write to stdout'
  contains "$(<"$T/acquirer.err")" 'could not release job ('
}

@test "a server is reached by name, by address and by unix socket, and in any database" {
  local db
  try acquire job --redis "redis://localhost:$REDIS_PORT/1"
  exits 0
  try acquire job --redis "redis://127.0.0.1:$REDIS_PORT/2"
  exits 0
  try acquire job --redis "unix://$REDIS_SOCK?db=3"
  exits 0
  try acquire job --redis "unix://${REDIS_SOCK/sock/%73ock}"
  exits 0
  for db in {0..3}; do same "$(cli -n "$db" EXISTS rlock:job)" 1; done
}

@test "a server is reached by IPv6 address" {
  grep -q '^0\{31\}1 ' /proc/net/if_inet6 || skip "this machine has no ::1"
  stop_redis
  start_redis --bind 127.0.0.1 ::1
  try acquire job --redis "redis://[::1]:$REDIS_PORT"
  exits 0
  exists rlock:job
}

@test "a database that the server does not have is refused by name" {
  refuses 69 redis://127.0.0.1 acquire job --redis "redis://127.0.0.1:$REDIS_PORT/99"
}

@test "no Redis at the address: 69, and the message names it" {
  refuses 69 127.0.0.1:1 acquire job --redis redis://127.0.0.1:1
  refuses 69 no-such-host.invalid acquire job --redis redis://no-such-host.invalid
  refuses 69 "$T/nothing" acquire job --redis "unix://$T/nothing"
}

@test "no answer within --redis-timeout: 69" {
  kill -STOP "$REDIS_PID"
  try acquire job --redis-timeout 300ms
  exits 69
  ((TOOK >= 300 && TOOK < 5000)) || fail "took $TOOK ms"
  contains "$ERR" "127.0.0.1:$REDIS_PORT"
}

@test "a lock that is gone before its first renewal is not acquired, and nobody is said to have forced it" {
  start_proxy
  network delay 0.3
  start taker rlock acquire job
  wait_held job
  cli DEL rlock:job
  finish "$PID"
  exits 75
  contains "$(<"$T/taker.err")" 'job not acquired: lost right after it was granted'
}

@test "another program's string counts as held, for ever if it has no expiry, and is not touched" {
  cli SET rlock:job $'to\nken'
  try acquire job -n
  exits 75
  contains "$ERR" 'held by another program (string of 6 bytes), never expires'
  cli PEXPIRE rlock:job 30000
  try acquire job -n
  exits 75
  matches "$ERR" 'held by another program \(string of 6 bytes\), (30|29|28)s left'
  same "$(cli GET rlock:job)" $'to\nken'
}

@test "another program's key of any type counts as held and is not touched" {
  local before
  cli RPUSH rlock:job a b
  cli SADD rlock:set a b
  cli HSET rlock:hash 4d9e:1 1
  for key in job set hash; do
    before=$(dump "rlock:$key")
    try acquire "$key" -n
    exits 75
    contains "$ERR" 'held by another program'
    same "$(dump "rlock:$key")" "$before"
  done
}

@test "--output json is valid JSON whatever bytes the key has" {
  local key=$'quote" back\\slash \ttab \e[31m \xc3\xbc'
  try acquire --key "$key" --output json
  exits 0
  query --arg key "$key" '.key == $key'
  [[ $OUT != *[$'\t\e']* ]] || fail "$OUT"
}
