# rlock check: whether this Redis can be trusted with locks, and the least rights that rlock needs there.

load ../support/helpers
load ../support/servers
load ../support/supervision

# says GRADE TOPIC [PART]: check printed such a line
says() {
  matches $'\n'"$OUT" $'\n'"$1"' +'"$2"' [^'$'\n'']*'"${3-}"
}

# as_user USER: rlock is that user from now on, with the password of the line that was pasted
as_user() {
  [[ -e $T/password ]] || (umask 77 && echo PASSWORD >"$T/password")
  export RLOCK_USERNAME=$1 RLOCK_PASSWORD_FILE=$T/password
}

# The line that check prints.
acl_line() {
  try check "$@"
  grep '^ACL SETUSER ' "$T/out"
}

# paste LINE: as into redis-cli's prompt; keeps the password that it gives
paste() {
  (umask 77 && sed -n 's/.* on >\([^ ]*\) .*/\1/p' <<<"$1" >"$T/password")
  same "$(cli <<<"$1")" OK
}

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
  says ok rights 'optional: to give rlock a user of its own .* paste into redis-cli'
  same "$(head -n 1 "$T/out")" 'ok    verdict      this Redis can be trusted with locks'
  same "$(tail -n 1 "$T/out" | cut -c 1-12)" 'ACL SETUSER '
  same "$(grep -vcE '^(ok|warn|FAIL) |^ACL SETUSER ' "$T/out")" 0
  same "$(cli DBSIZE)" 0
}

@test "a server that has evicted scripts gets a warning, and one that has not gets none" {
  local number
  cli INFO everything | grep -q ^evicted_scripts || skip "this machine has a server that evicts no scripts"
  try check
  [[ $OUT != *evicted* ]] || fail "$OUT"
  for number in {1..501}; do echo "EVAL 'return $number' 0"; done | cli >/dev/null
  try check
  says warn scripts '[0-9]+ evicted, since some program keeps sending new ones'
}

@test "a clock that agrees with ours is reported as such" {
  for _ in {1..50}; do # until both read the same millisecond
    try check
    [[ $OUT != *"the same as this machine's"* ]] || break
  done
  says ok clock "the same as this machine's"
  [[ $OUT != *0ms* ]] || fail "$OUT"
}

@test "a clock that is far ahead of ours or behind it gets a warning" {
  local time='*2\r\n$10\r\n'
  start_proxy
  network forge "${time}1" "${time}2" # 31 years later
  try check
  exits 0
  says warn clock "1157[34]d[0-9]+h ahead of this machine's"
  network forge "${time}1" "${time}0"
  try check
  says warn clock "1157[34]d[0-9]+h behind this machine's"
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
  cli CONFIG SET maxmemory-policy volatile-ttl # all keys of a lock have a time to live
  try check
  says FAIL eviction volatile-ttl
}

@test "a replica is not fit for locks: 1, and the message names its master" {
  local master=$REDIS_PORT
  start_redis --replicaof 127.0.0.1 "$master"
  try check
  exits 1
  says FAIL role "replica of 127.0.0.1:$master"
  says '' 'what to do' 'give the address of the master to --redis'
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
  REDIS_PORT=${url##*:}
  start_proxy
  network forge connected_slaves:1 connected_slaves:2
  try check
  says warn replicas '2, one of which is not in sync'
}
cli_at_master() { "$REDIS_CLI" -u "$RLOCK_REDIS" "$@"; }
in_step() { rlock check | grep -q 'ok .*replicas .*1'; }

@test "no server: 69, on stdout and on stderr" {
  try check --redis redis://127.0.0.1:1
  exits 69
  says FAIL reachable 127.0.0.1:1
  matches "$ERR" '^rlock: redis://127.0.0.1:1: '
}

@test "a server that does not answer is told once on each stream, with the origin of its address and what to do" {
  echo 'redis = redis://127.0.0.1:1' >"$T/rlock.conf"
  unset RLOCK_REDIS
  try check --config "$T/rlock.conf"
  exits 69
  says FAIL reachable "redis://127.0.0.1:1: .* [(]from $T/rlock.conf:1: redis[)]"
  same "$(grep -c Connection "$T/out")" 1
  matches "$OUT" $'\n +what to do +check that the server runs .* or correct the address'
  matches "$ERR" "^rlock: redis://127.0.0.1:1: [^"$'\n'"]* [(]from $T/rlock.conf:1: redis[)]$"
}

@test "a server that answers is not said to be out of reach" {
  cli CONFIG SET replica-serve-stale-data no
  cli REPLICAOF 127.0.0.1 1
  try check
  exits 69
  says FAIL reachable '.*MASTERDOWN'
  [[ $OUT != *'check that the server runs'* ]] || fail "$OUT"
  start_fake garbage
  try check
  exits 69
  says FAIL reachable '.*not a Redis reply'
  [[ $OUT != *'check that the server runs'* ]] || fail "$OUT"
}

@test "locks about which there is much to say are no fault of the server" {
  local i words
  words=$(printf '%01024d' 0)
  for i in {1..40}; do try acquire "job$i" --holder "$words" --note "$words"; done
  exits 0
  try check
  says ok reachable
}

@test "on a terminal, the text is folded within its column, and a failure is told once" {
  OUT=$(TERM=xterm python3 "$BATS_TEST_DIRNAME/../support/terminal.py" sh -c 'stty cols 60 rows 24; rlock check; rlock check -r redis://127.0.0.1:1; true')
  [[ $OUT == *'what to do'* ]] || fail "$OUT"
  same "$(tr -d '\r' <<<"$OUT" | grep -vE '^(CONFIG|ACL) ' | sed $'s/\e[^m]*m//g' | grep -E '.{61}')" ''
  matches "$OUT" $'\n {19}[a-z]'
  same "$(grep -c 'Connection refused' <<<"$OUT")" 1
}

@test "-q prints only what is not good, so that cron mails nothing else" {
  stop_redis
  start_redis --appendonly yes
  try check -q
  exits 0
  same "$OUT$ERR" ''
  cli CONFIG SET maxmemory-policy allkeys-lru
  try check -q
  exits 0
  same "$(cut -c 1-18 "$T/out")" 'warn  verdict     
warn  eviction    
      what to do  
CONFIG SET maxmemo
                  '
}

@test "a wrong password: 77, and it is not shown" {
  cli CONFIG SET requirepass s3cret
  RLOCK_PASSWORD=wr0ng try check
  exits 77
  [[ $OUT$ERR != *wr0ng* ]]
  RLOCK_PASSWORD=s3cret try check
  exits 0
}

no_uptime() { [[ $(rlock check "$@") != *uptime* ]]; } # OPTION...

@test "several servers: each is examined, one that is away is a failure, a majority away is 69" {
  local one=$RLOCK_REDIS two
  start_redis
  two=$RLOCK_REDIS
  unset RLOCK_REDIS
  try check -r "$one" -r "$two"
  exits 0
  says ok version "$two: "
  says ok persistence "$two: off; after a restart it does not vote until --max-lease has passed"
  says warn uptime "$two: up for [0-9.ms]+: it votes in [0-9.ms]+ [(]--max-lease 1m[)]"
  no_uptime -r "$two" # one server alone always votes
  wait_until "$PATIENCE" no_uptime -r "$one" -r "$two" --max-lease 500ms
  try check -r redis://127.0.0.1:1 -r "$one" -r "$two" --max-lease 500ms
  exits 1
  says FAIL verdict 'a majority of these servers can be trusted with locks, and the others could not be examined: fix what is marked FAIL below'
  try check -r redis://127.0.0.1:1 -r "$one" -r "$two"
  exits 1
  says ok rights '.* [(]a restart forgets it, since the server has neither an aclfile nor a configuration file; .*[)]:'
  try check -r "$one" -r redis://127.0.0.1:2 -r redis://127.0.0.1:1
  exits 69
  try check -r "$one" -r redis://127.0.0.1:1
  exits 69
}

@test "several servers: how many must answer, when they may vote, and that none is there twice" {
  local one=${RLOCK_REDIS#redis://127.0.0.1:} two three
  start_redis
  two=$REDIS_PORT
  start_redis
  three=$REDIS_PORT
  export RLOCK_REDIS="redis://127.0.0.1:$one redis://127.0.0.1:$two"
  try check --max-lease 1h
  exits 0
  says warn quorum 'no lock is granted for [0-9hms.]+, until a majority may vote'
  wait_until "$PATIENCE" no_uptime --max-lease 1s --redis-timeout 1s
  try check --max-lease 1s
  exits 0
  says warn quorum 'both servers must answer, so the failure of either stops all locks; with three, one may fail'
  RLOCK_REDIS+=" redis://127.0.0.1:$three"
  wait_until "$PATIENCE" no_uptime --max-lease 1s
  try check --max-lease 1s
  says ok quorum '2 of 3 servers must answer'
  try check --max-lease 1s --json
  query '.quorum.result == "ok"'
  RLOCK_REDIS+=" redis://localhost:$two/3"
  try check --max-lease 1s
  exits 1
  says FAIL quorum "redis://127.0.0.1:$two and redis://localhost:$two/3 are the same server; each --redis must name a different one, .*"
  matches "$OUT" '^FAIL +verdict +do not trust these servers'
  RLOCK_REDIS="redis://127.0.0.1:$one redis://127.0.0.1:$one/3"
  for try in check status 'hold job --for 1h' 'release job --force'; do
    # shellcheck disable=SC2086 # words
    refuses 64 "redis://127.0.0.1:$one and redis://127.0.0.1:$one/3 are the same server" $try
  done
}

@test "--json prints the same findings" {
  try check --json
  exits 0
  query --arg url "$RLOCK_REDIS" '.exit_status == 0 and .servers[0].server == $url and
    (.servers[0].findings | map({(.topic): .result}) | add | .reachable == "ok" and .persistence == "warn")'
  query '.acl[0] | startswith("ACL SETUSER ")'
}

@test "what it advises survives a restart of a server that has a configuration file" {
  local line
  stop_redis
  printf 'save ""\n' >"$T/redis.conf"
  start_with_file() { # the file, and nothing else that would last
    "$REDIS_SERVER" "$T/redis.conf" --port "$REDIS_PORT" --unixsocket "$REDIS_SOCK" --dir "$T" >"$T/server.log" 2>&1 3>&- 4>&- &
    REDIS_PID=$!
    SERVERS+=("$REDIS_PID")
    wait_until "$PATIENCE" answers_ping
  }
  answers_ping() { [[ $(cli PING 2>&1) == PONG ]]; }
  start_with_file
  cli CONFIG SET maxmemory-policy allkeys-lru
  try check
  grep '^CONFIG ' "$T/out" >"$T/advice"
  same "$(grep -c 'CONFIG REWRITE' "$T/advice")" 3 # eviction, persistence, rights
  same "$(tail -n 1 "$T/out")" 'CONFIG REWRITE'
  while read -r line; do cli <<<"$line"; done <"$T/advice"
  paste "$(grep '^ACL SETUSER' "$T/out")"
  cli CONFIG REWRITE
  stop_redis
  start_with_file
  as_user rlock
  try check
  [[ $OUT != *'CONFIG SET'* ]] || fail "$OUT"
  exits 0
}

@test "the rights come with a random password, and what makes them last" {
  local line
  line=$(acl_line)
  matches "$line" '^ACL SETUSER rlock on >[0-9a-f]{32} ~'
  [[ $line != "$(acl_line)" ]]
  contains "$(rlock check)" 'a restart forgets it, since the server has neither an aclfile nor a configuration file'
}

@test "the line that it prints suffices for everything that rlock does" {
  local line
  line=$(acl_line)
  same "$(wc -l <<<"$line")" 1
  paste "$line"
  as_user rlock
  live
}

@test "from a user that has all rights the line takes those that rlock does not need" {
  cli ACL SETUSER bob on ">PASSWORD" '~*' '&*' +@all >/dev/null
  as_user bob
  same "$(cli ACL SETUSER bob '~rlock:*' 2>&1 | grep -c 'not valid')" 1 # Redis takes no pattern after *
  same "$(rlock check | grep '^ACL SETUSER bob ' | cli)" OK
  contains "$(rlock check)" 'the user bob has all that are needed'
  contains "$(cli --no-auth-warning --user bob --pass PASSWORD FLUSHALL 2>&1)" NOPERM
}

has_rewritten() { cli INFO persistence | grep -q 'aof_rewrite_in_progress:0'; }

@test "run as the user of that line, check claims nothing that only CONFIG could tell, and advises only what helps" {
  paste "$(acl_line)"
  as_user rlock
  try check
  exits 0
  says warn persistence 'a crash may free locks; snapshots are not known, since this user may not use CONFIG'
  contains "$OUT" ', as one who may use CONFIG, paste into redis-cli:'
  says ok rights 'the user rlock has all that are needed; optional: to leave it no others, paste into redis-cli'
  [[ $OUT != *'ACL SETUSER rlock on'* ]] || fail "$OUT"
  cli CONFIG SET appendonly yes >/dev/null
  wait_until "$PATIENCE" has_rewritten # while it writes the file for the first time it obeys no TERM
  try check
  says ok verdict 'this Redis can be trusted with locks'
  says ok persistence 'appendfsync not known, since this user may not use CONFIG'
  cli ACL SETUSER rlock -wait
  try check
  exits 1
  says FAIL rights 'this user lacks some; as one who may give them, paste into redis-cli '
  contains "$OUT" '(a restart forgets it without ACL SAVE, or CONFIG REWRITE if the server has no aclfile):'
}

@test "every right in the line is needed: without it something fails, with 77" {
  local line right failed
  line=$(acl_line)
  paste "$line"
  as_user rlock
  # Without the rights that waking needs, waiting takes longer but works; without those to write it there is no history.
  # Only who comes late uses LSET, only --replicas uses WAIT, and only crowds are counted and read whole. Scripts that
  # may not be loaded are sent by EVAL, and those that may need it only to cancel.
  # shellcheck disable=SC2013 # they are words
  for right in $(grep -oE '[+][a-z]+' <<<"$line"); do
    case $right in
      +publish | +pubsub | +subscribe | +unsubscribe | +rpush | +ltrim | +lset | +wait | +hlen | +hgetall | +info | +script | \
        +eval) continue ;;
    esac
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
  try release job --token "${token:-00000000000000000000000000000000}" # it asks what became of the first
  echo "$STATUS"
  try release job --force
  echo "$STATUS"
  rlock acquire shared -s --ttl 5s >/dev/null 2>&1 || true
  try acquire shared -s --ttl 5s
  echo "$STATUS"
  try release shared --token "${OUT:-00000000000000000000000000000000}" # another one stays
  echo "$STATUS"
}

@test "rights that are missing are a failure that names what was refused" {
  paste "$(acl_line)"
  as_user rlock
  cli ACL SETUSER rlock -hset
  try check
  exits 1
  says FAIL permissions acquire
  says FAIL verdict 'this user may not lock on this Redis: fix what is marked FAIL below'
  cli ACL SETUSER rlock +hset resetkeys '~other:*'
  try check
  exits 1
  says FAIL permissions
  cli ACL SETUSER rlock '~rlock:*' '~{rlock:*}:*' resetchannels
  try check
  exits 1
  says FAIL permissions subscribe
}

@test "a server that takes no writes fails for its own reason, with what to do, and no rights are missed" {
  cli CONFIG SET maxmemory 1
  fails_to_write 'acquire: OOM ' 'raise its maxmemory, or delete keys'
  cli CONFIG SET maxmemory 0
  cli CONFIG SET min-replicas-to-write 1
  fails_to_write 'acquire: NOREPLICAS ' 'bring its replicas back, or lower min-replicas-to-write'
  cli CONFIG SET min-replicas-to-write 0
  mkdir "${REDIS_SOCK%/*}/dump.rdb" # so that no file can be put there
  cli CONFIG SET save "1 1"
  cli SET a b
  cli BGSAVE
  wait_until "$PATIENCE" refuses_to_write
  fails_to_write 'acquire: MISCONF ' 'mend what keeps the server from saving'
  cli CONFIG SET save '' # or it does not end on TERM
  start_redis --replicaof 127.0.0.1 "$REDIS_PORT"
  fails_to_write 'acquire: this is a replica' 'give the address of the master'
}

fails_to_write() { # WORDS ADVICE
  try check
  exits 1
  says FAIL writes "$1"
  says '' 'what to do' "$2"
  [[ $OUT != *permissions* && $OUT != *rights* && $OUT != *'ACL SETUSER'* ]] || fail "$OUT"
}


@test "whoever has hardly any rights gets the line of rights all the same, and each refusal once" {
  paste "$(acl_line)"
  cli ACL SETUSER rlock reset on ">$(<"$T/password")" '~rlock:*' +ping
  as_user rlock
  try check
  exits 1
  same "$ERR" ''
  same "$(grep -c '^FAIL  *permissions' "$T/out")" 4
  says FAIL permissions '[1-9][0-9]* more were refused; --json names them all'
  same "$(rlock check --json | jq '[.servers[0].findings[] | select(.topic == "permissions")] | length')" \
    $((3 + $(sed -nE 's/^FAIL  *permissions  ([0-9]+) more .*/\1/p' "$T/out")))
  says ok reachable
  says warn clock 'TIME is refused'
  contains "$OUT" $'\nACL SETUSER rlock ~rlock:'
  cli ACL SETUSER rlock '&*' +@all -hscan
  try check
  exits 1
  same "$(grep -c '^FAIL  *permissions' "$T/out")" 2
  says FAIL permissions 'acquire: .*NOPERM.*key'
  says FAIL rights 'this user lacks some; as one who may give them, paste into redis-cli'
  says FAIL permissions ".*NOPERM.*'?hscan"
}

@test "one missing right is one failure, also where for want of it nothing could be written before" {
  local line right
  line=$(acl_line)
  for right in hset rpush del time evalsha; do
    paste "${line/ +$right/}"
    as_user rlock
    try check
    exits 1
    same "$(grep -c '^FAIL  *permissions' "$T/out")" 1
    unset RLOCK_USERNAME RLOCK_PASSWORD_FILE
    cli ACL DELUSER rlock
  done
}

@test "a right that only some runs need is missed too, each command of the line" {
  local command line
  line=$(acl_line)
  for command in publish 'pubsub|numsub' getrange hscan wait info; do
    paste "${line/ +$command/}"
    as_user rlock
    try check
    exits 1
    says FAIL permissions "[^ ].*NOPERM.*'?${command%|*}"
    unset RLOCK_USERNAME RLOCK_PASSWORD_FILE
    cli ACL DELUSER rlock
  done
}

@test "the line keeps the name and password of our own user" {
  cli ACL SETUSER deploy on '>PASSWORD' '~*' '&*' '+@all'
  as_user deploy
  matches "$(acl_line)" '^ACL SETUSER deploy resetkeys resetchannels nocommands ~'
}

@test "a user with all keys and channels: Redis takes no patterns, and the line suffices without them" {
  local line
  cli ACL SETUSER deploy on '>PASSWORD' '~*' '&*' +@read
  as_user deploy
  try check
  exits 1
  line=$(grep '^ACL SETUSER deploy' "$T/out")
  contains "$(cli <<<"$line")" 'Adding a pattern after the * pattern'
  contains "$OUT" 'if Redis says that no pattern may follow *, the user has all keys or channels: leave out what begins with ~ or &'
  same "$(tr ' ' '\n' <<<"$line" | grep -v '^[~&]' | xargs | cli)" OK
  try check
  exits 0
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
  future=$(($(date +%s%3N) + 3600000))
  cli HSET '{rlock:job}:meta' success "$future $future a@h h u 1 c n"
  try check
  says warn clock '.*it was set back by (1h00m|59m[0-9]+s) or more since its locks were last used'
  future=$((future + 3600000))
  cli RPUSH '{rlock:job}:history' "7 $future $future 0 1 0 a@h h u 1 c n"
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
  cli RPUSH '{job}:history' "7 $future $future 0 1 0 a@h h u 1 c n"
  try check --prefix ''
  exits 0
  says warn clock '.*it was set back by (2h00m|1h59m) or more since its locks were last used'
}

@test "the first line is the verdict, and each problem comes with the line to paste that fixes it" {
  cli CONFIG SET maxmemory 100mb
  cli CONFIG SET maxmemory-policy allkeys-lru
  try check
  exits 1
  same "$(head -n 1 "$T/out" | tr -s ' ')" 'FAIL verdict do not trust this Redis with locks yet: fix what is marked FAIL below'
  matches "$OUT" $'\nFAIL  eviction [^\n]*
 +what to do +for now, since a restart forgets it, paste into redis-cli:
CONFIG SET maxmemory-policy noeviction
 +for good, start redis-server with --maxmemory-policy noeviction: it has no configuration file
warn  persistence [^\n]*
 +what to do +for now, since a restart forgets it, paste into redis-cli:
CONFIG SET appendonly yes
 +for good, start redis-server with --appendonly yes: it has no configuration file
'
  try check --json
  query '.verdict == {result: "FAIL", topic: "verdict",
    text: "do not trust this Redis with locks yet: fix what is marked FAIL below"}'
  query '.servers[0].findings | map(select(.topic == "eviction")) | .[0].text |
    test("; for now, since a restart forgets it, paste into redis-cli: `CONFIG SET maxmemory-policy noeviction`; for good, start redis-server with ")'
  cli CONFIG SET maxmemory-policy noeviction
  try check
  exits 0
  matches "$(head -n 1 "$T/out")" '^warn +verdict +this Redis can be trusted with locks, except for what the warning below says$'
  try check --redis redis://127.0.0.1:1
  matches "$(head -n 1 "$T/out")" '^FAIL +verdict +this Redis could not be examined$'
}

@test "colours on a terminal, and none elsewhere" {
  try check
  [[ $OUT != *$'\e'* ]]
  matches "$(TERM=xterm script -qec 'rlock check' /dev/null)" $'\e\\[3[23]m'
  matches "$(TERM=xterm NO_COLOR=1 script -qec 'rlock check' /dev/null)" '^warn '
}
