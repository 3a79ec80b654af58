# rlock check: whether this Redis can be trusted with locks, and the least rights that rlock needs there.

load ../support/helpers
load ../support/supervision

# says GRADE TOPIC [PART]: check printed such a line
says() {
  matches $'\n'"$OUT" $'\n'"$1"' +'"$2"' [^'$'\n'']*'"${3-}"
}

# as_user USER: rlock is that user from now on, whose password is in a file
as_user() {
  echo PASSWORD >"$T/password"
  chmod 600 "$T/password"
  export RLOCK_USERNAME=$1 RLOCK_PASSWORD_FILE=$T/password
}

# The line that check prints.
acl_line() {
  try check "$@"
  grep '^ACL SETUSER ' "$T/out"
}

# paste LINE: as into redis-cli's prompt
paste() { same "$(cli <<<"$1")" OK; }

# Everything that a lock can go through, as whoever we are; each step ends well.
live() {
  local waiter
  cli DEL go
  try run --key job -- true
  exits 0
  start holder rlock run --key job -- sh -c 'until [ -e "$0" ]; do sleep 0.05; done' "$T/go"
  wait_held job
  start waiter rlock run --key job --wait 20 -- rlock renew
  waiter=$PID
  wait_until "$PATIENCE" exists '{rlock:job}:queue'
  try status
  exits 0
  try status job
  exits 0
  try run --key job -n -- true
  exits 75
  touch "$T/go"
  finish "$waiter"
  exits 0
  rm "$T/go"
  try acquire 'x{tag}' --slots 2
  exits 0
  try release 'x{tag}' --token "$OUT"
  exits 0
  try acquire job
  exits 0
  try release job --force
  exits 0
  try check
  exits 0
}

@test "a good server: a line for each finding, 0, and nothing is left on it" {
  stop_redis
  start_redis --appendonly yes
  try check
  exits 0
  same "$ERR" ''
  says ok reachable "$RLOCK_REDIS in [0-9.]+ ms"
  says ok version '[5-9]\.'
  says ok role master
  says ok eviction noeviction
  says ok persistence append-only
  says ok replicas none
  says ok clock
  says ok permissions
  says ok rights 'this line suffices; paste it'
  same "$(tail -n 1 "$T/out")" 'ok    verdict      can be trusted with locks'
  same "$(grep -vcE '^(ok|warn|FAIL) |^ACL SETUSER ' "$T/out")" 0
  same "$(cli DBSIZE)" 0
}

@test "without persistence: a warning, and still 0" {
  try check
  exits 0
  says warn persistence off
  cli CONFIG SET save '3600 1'
  try check
  exits 0
  says warn persistence snapshots
}

@test "an append-only file that is never synced explicitly: a warning" {
  stop_redis
  start_redis --appendonly yes --appendfsync no
  try check
  exits 0
  says warn persistence 'append-only file, appendfsync no: if its machine crashes, every lock may be freed'
}

@test "a policy that evicts: a warning, and with a maxmemory a failure, 1" {
  cli CONFIG SET maxmemory-policy allkeys-lru
  try check
  exits 0
  says warn eviction allkeys-lru
  cli CONFIG SET maxmemory 100mb
  try check
  exits 1
  says FAIL eviction allkeys-lru
  same "$ERR" ''
}

@test "a replica is not fit for locks: 1, and the message names its master" {
  local master=$REDIS_PORT
  start_redis --replicaof 127.0.0.1 "$master"
  try check
  exits 1
  says FAIL role "127.0.0.1:$master"
}

@test "replicas are counted" {
  local url=$RLOCK_REDIS
  start_redis --replicaof 127.0.0.1 "$REDIS_PORT"
  export RLOCK_REDIS=$url
  wait_until "$PATIENCE" in_step
  try check
  exits 0
  says ok replicas '1; .*see --replicas.*; with min-replicas-to-write 0 and min-replicas-max-lag 10 a master that is cut off'
  cli_at_master CONFIG SET min-replicas-to-write 1
  try check
  says ok replicas '1; .*with min-replicas-to-write 1 a master that is cut off from them goes on granting for min-replicas-max-lag 10s'
}
cli_at_master() { "$REDIS_CLI" -u "$RLOCK_REDIS" "$@"; }
in_step() { rlock check | grep -q 'ok .*replicas .*1'; }

@test "no server: 69, on stdout and on stderr" {
  try check --redis redis://127.0.0.1:1
  exits 69
  says FAIL reachable 127.0.0.1:1
  matches "$ERR" '^rlock: redis://127.0.0.1:1: '
}

@test "a wrong password: 77, and it is not shown" {
  cli CONFIG SET requirepass s3cret
  RLOCK_PASSWORD=wr0ng try check
  exits 77
  [[ $OUT$ERR != *wr0ng* ]]
  RLOCK_PASSWORD=s3cret try check
  exits 0
}

@test "several servers: each is examined, one that is away is a failure, a majority away is 69" {
  local one=$RLOCK_REDIS two
  start_redis
  two=$RLOCK_REDIS
  unset RLOCK_REDIS
  try check -r "$one" -r "$two" -r "$one"
  exits 0
  says ok version "$two: "
  try check -r "$one" -r "$two" -r redis://127.0.0.1:1
  exits 1
  try check -r "$one" -r redis://127.0.0.1:2 -r redis://127.0.0.1:1
  exits 69
}

@test "--json prints the same findings" {
  try check --json
  exits 0
  query --arg url "$RLOCK_REDIS" '.exit_status == 0 and .servers[0].server == $url and
    (.servers[0].findings | map({(.topic): .result}) | add | .reachable == "ok" and .persistence == "warn")'
  query '.acl[0] | startswith("ACL SETUSER ")'
}

@test "the line that it prints suffices for everything that rlock does" {
  local line
  line=$(acl_line)
  same "$(wc -l <<<"$line")" 1
  paste "$line"
  as_user rlock
  live
}

@test "every right in the line is needed: without it something fails, with 77" {
  local line right failed
  line=$(acl_line)
  paste "$line"
  as_user rlock
  # Without the rights that waking needs, waiting takes longer but works; without those to write it there is no history.
  # Only --replicas uses WAIT, and EVAL is used only while the server does not know the scripts.
  # shellcheck disable=SC2013 # they are words
  for right in $(grep -oE '[+][a-z]+' <<<"$line"); do
    case $right in +publish | +pubsub | +subscribe | +unsubscribe | +rpush | +ltrim | +wait | +info) continue ;; esac
    cli SCRIPT FLUSH
    cli ACL SETUSER rlock "-${right#+}"
    failed=$(try_all | tr '\n' ' ')
    cli ACL SETUSER rlock "$right"
    cli DEL rlock:job # without the right to release, the lock stays
    contains " $failed " ' 77 ' || fail "nothing failed with 77 without $right: $failed"
  done
}

# The exit statuses of everything that rlock does.
try_all() {
  local token
  try acquire job
  token=$OUT
  echo "$STATUS"
  try run --key job --wait 200ms -- true
  echo "$STATUS"
  try renew job --token "${token:-00000000000000000000000000000000}"
  echo "$STATUS"
  cli SET rlock:string value >&2
  cli HSET rlock:hash field value >&2
  try status
  echo "$STATUS"
  try log
  echo "$STATUS"
  try release job --token "${token:-00000000000000000000000000000000}"
  echo "$STATUS"
  try release job --force
  echo "$STATUS"
  rlock acquire shared -s --ttl 5s >/dev/null 2>&1 || true
  try acquire shared -s --ttl 5s
  try release shared --token "${OUT:-00000000000000000000000000000000}" # another one stays
  echo "$STATUS"
}

rights_of_0_1='+eval +evalsha +time +info +type +del +pttl +pexpire +pexpireat +getrange +hget +hmget +hset +hdel +hgetall
  +hscan +zadd +zrem +zrange +zrank +zcard +publish +subscribe +pubsub|numsub +scan +wait'

@test "with the rights that 0.1.0 needed there is no history, but all locks work, also after a run that died" {
  paste "$(acl_line)"
  # shellcheck disable=SC2086 # they are words
  cli ACL SETUSER rlock nocommands $rights_of_0_1
  as_user rlock
  try run --key job -- true
  exits 0
  same "$ERR" ''
  try acquire job --ttl 200ms
  try run --key job -- true
  exits 0
  same "$(exists '{rlock:job}:history' && echo yes)" ''
  try log job
  exits 77
  try check
  exits 1
  says FAIL permissions history
}

@test "rights that are missing are a failure that names what was refused" {
  paste "$(acl_line)"
  as_user rlock
  cli ACL SETUSER rlock -hset
  try check
  exits 1
  says FAIL permissions acquire
  cli ACL SETUSER rlock +hset resetkeys '~other:*'
  try check
  exits 1
  says FAIL permissions
  cli ACL SETUSER rlock '~rlock:*' '~{rlock:*}:*' resetchannels
  try check
  exits 1
  says FAIL permissions subscribe
}

@test "the line keeps the name and password of our own user" {
  cli ACL SETUSER deploy on '>PASSWORD' '~*' '&*' '+@all'
  as_user deploy
  matches "$(acl_line)" '^ACL SETUSER deploy ~'
}

@test "the line fits the prefix, the database and where the master is" {
  [[ $(acl_line) != *'+select'* ]]
  contains "$(acl_line --redis "$RLOCK_REDIS/3")" ' +select'
  contains "$(acl_line --prefix 'a*b c:')" ' ~a\*b?c:* ~{a\*b?c:*}:* '
  contains "$(acl_line --prefix '')" ' ~* &*:wake:* +'
  contains "$(acl_line --prefix '{tag}')" ' ~{tag}* &{tag}*:wake:* +'
}

@test "with another prefix the line suffices too" {
  export RLOCK_PREFIX='team a:*:'
  paste "$(acl_line)"
  as_user rlock
  try check
  exits 0
  try run --key job -- true
  exits 0
}

@test "what a server says of itself is printed escaped" {
  start_proxy
  network forge 'maxmemory_policy:noeviction' 'maxmemory_policy:\x1b[31mevict'
  try check
  contains "$OUT" '\x1b[31mevict'
  [[ $OUT$ERR != *$'\e'* ]] || fail "$OUT$ERR"
}

@test "a clock that was set back is detected from the locks' records" {
  local future
  try run --key job -- true
  try check
  says ok clock
  future=$(($(date +%s%3N) + 7200000))
  cli HSET '{rlock:job}:meta' last "$future $future 0 0 a@h h u 1 c n"
  try check
  exits 0
  says warn clock '.*it was set back by (2h00m|1h59m) or more since its locks were last used'
}

@test "a clock that was set back is detected without a prefix, also by a server that cannot list by type" {
  local future
  start_proxy
  network misspell '$4\r\nTYPE' '$4\r\nTYPO' # as unknown to it as to Redis 5
  try run --key job --prefix '' -- true
  future=$(($(date +%s%3N) + 7200000))
  cli HSET '{job}:meta' last "$future $future 0 0 a@h h u 1 c n"
  try check --prefix ''
  exits 0
  says warn clock '.*it was set back by (2h00m|1h59m) or more since its locks were last used'
}

@test "the last line is the verdict, and each problem comes with the command that fixes it" {
  cli CONFIG SET maxmemory 100mb
  cli CONFIG SET maxmemory-policy allkeys-lru
  try check
  exits 1
  says FAIL eviction '; run `CONFIG SET maxmemory-policy noeviction`'
  says warn persistence '; run `CONFIG SET appendonly yes`'
  same "$(tail -n 1 "$T/out" | tr -s ' ')" 'FAIL verdict do not trust it with locks: 1 FAIL, 1 warn'
  cli CONFIG SET maxmemory-policy noeviction
  try check
  exits 0
  matches "$(tail -n 1 "$T/out")" '^warn +verdict +can be trusted with locks, except where it warns'
}

@test "colours on a terminal, and none elsewhere" {
  try check
  [[ $OUT != *$'\e'* ]]
  matches "$(TERM=xterm script -qec 'rlock check' /dev/null)" $'\e\\[3[23]m'
  matches "$(TERM=xterm NO_COLOR=1 script -qec 'rlock check' /dev/null)" '^ok '
}
