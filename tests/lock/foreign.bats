# Locks of other programs on the same key: they exclude rlock, rlock excludes them, and rlock never changes theirs.

load ../support/helpers

setup() {
  hermetic
  start_redis
  export RLOCK_PREFIX=
}

# python SCRIPT: runs it with redis-py as `redis` and a connection as `r`
python() {
  /usr/bin/python3 -c "
import redis
r = redis.Redis(unix_socket_path='$REDIS_SOCK')
$1"
}

# excluded: rlock finds the lock deploy held, shows it as foreign, and does not change it
excluded() { # PART, of the message
  local before
  before=$(dump deploy)
  try run --key deploy -n -- touch "$T/started"
  exits 75
  contains "$ERR" "deploy not acquired: held by another program ($1"
  try run --key deploy --shared --wait 300ms -- touch "$T/started"
  exits 75
  contains "$ERR" "waiting for deploy, held by another program ($1"
  try status deploy --json
  exits 0
  query '.[0].state == "foreign"'
  [[ ! -e $T/started ]]
  same "$(dump deploy)" "$before"
  same "$(cli --raw KEYS '*' | grep -vE ':(meta|history|ended:.*)$')" deploy
}

@test "redis-py's Lock excludes rlock, and goes on working" {
  mkfifo "$T/end"
  exec 8<>"$T/end"
  python 'pass'
  start other /usr/bin/python3 -c "
import redis
with redis.Redis(unix_socket_path='$REDIS_SOCK').lock('deploy', timeout=30) as lock:
    open('$T/end').readline()
    lock.extend(10)
print('released')"
  wait_until "$PATIENCE" exists deploy
  excluded 'string of '
  start waiter rlock run --key deploy -- echo next
  wait_for_text "waiting for deploy" "$T/waiter.err"
  echo >&8
  finish "$PID"
  exits 0
  contains "$(<"$T/other.out")" released
}

@test "rlock excludes redis-py's Lock, which gets it afterwards" {
  start holder rlock run --key deploy -- sleep 600
  HOLDER=$PID
  wait_until "$PATIENCE" exists deploy
  same "$(python "print(r.lock('deploy', timeout=30).acquire(blocking=False))")" False
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  same "$(python "print(r.lock('deploy', timeout=30).acquire(blocking=False))")" True
}

@test "a lock by SET NX PX (redsync, node-redlock, shell scripts) excludes rlock, and rlock excludes it" {
  cli SET deploy my-token NX PX 60000 >/dev/null
  excluded 'string of 8 bytes), '
  try release deploy --token "$(printf '%032d' 1)"
  exits 1
  cli DEL deploy >/dev/null
  try run --key deploy -- "$REDIS_CLI" -s "$REDIS_SOCK" SET deploy my-token NX PX 60000
  exits 0
  same "$OUT" ''
}

@test "a foreign key that never expires is reported so" {
  cli SET deploy for-ever >/dev/null
  excluded 'string of 8 bytes), never expires'
}

@test "Redisson's hash excludes rlock, and rlock excludes it" {
  # The hash that RLock.lock() leaves, and the script by which it tries to take a lock.
  local take="if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
    redis.call('hincrby', KEYS[1], ARGV[1], 1) redis.call('pexpire', KEYS[1], 30000) return 'taken' end
    return redis.call('pttl', KEYS[1])"
  same "$(cli EVAL "$take" 1 deploy 285475da-9152-4c83-822a-67ee2f116a79:52)" taken
  excluded 'hash), '
  cli DEL deploy >/dev/null
  try run --key deploy --ttl 30s -- "$REDIS_CLI" -s "$REDIS_SOCK" EVAL "$take" 1 deploy 285475da:52
  exits 0
  matches "$OUT" '^4[0-9]{3}$' # the lease of a grant until its first renewal
}

@test "a list, set or stream on the key counts as a held lock" {
  cli RPUSH deploy a b >/dev/null
  excluded 'list), never expires'
  cli DEL deploy >/dev/null
  cli SADD deploy a >/dev/null
  excluded 'set), never expires'
  cli DEL deploy >/dev/null
  cli XADD deploy '*' a b >/dev/null
  excluded 'stream), never expires'
}

@test "only --force without --fence deletes a foreign key, and it says so" {
  cli SET deploy theirs >/dev/null
  try release deploy --force --fence 7
  exits 1
  same "$(cli GET deploy)" theirs
  try release deploy --force
  exits 0
  contains "$OUT" 'deleted another program'
  same "$(cli EXISTS deploy)" 0
}

# install_redlock: for this test, unless it is there already
install_redlock() {
  optional npm npm # it installs node-redlock, and brings node
  node -e 'require("redlock"); require("ioredis")' 2>/dev/null && return
  export NODE_PATH=$T/node_modules
  npm install --prefix "$T" --silent --no-audit --no-fund --fetch-retries 0 redlock@4 ioredis@5 >/dev/null 2>&1 ||
    skip "optional package redlock cannot be installed by npm"
}

@test "node-redlock excludes rlock and is excluded" {
  install_redlock
  cat >"$T/redlock.js" <<'END'
const Redlock = require("redlock"), Redis = require("ioredis");
const redis = new Redis(process.argv[2]);
new Redlock([redis], {retryCount: 0}).lock("deploy", 30000)
  .then(() => console.log("taken"), () => console.log("refused")).then(() => redis.quit());
END
  try run --key deploy -- node "$T/redlock.js" "$REDIS_SOCK"
  same "$OUT" refused
  same "$(node "$T/redlock.js" "$REDIS_SOCK")" taken
  excluded 'string of '
}

@test "whoever waits behind another program's key is handed the lock, without asking again, by whoever finds the key gone" {
  local question
  start monitor "$REDIS_CLI" -s "$REDIS_SOCK" MONITOR
  wait_for_text OK "$T/monitor.out"
  cli SET deploy theirs >/dev/null
  try run --key deploy -n -- true
  exits 75
  wait_for_text '"once"' "$T/monitor.out"
  question=$(sed -n '/"once"/{s/^[^]]*] //p;q;}' "$T/monitor.out")
  for _ in {1..10}; do # the waiter asks every now and then, and may be faster
    cli SET deploy theirs >/dev/null
    start waiter rlock run --key deploy -v -- true
    wait_for_text 'waiting for deploy, held by another program' "$T/waiter.err"
    printf '%s\n' 'DEL deploy' "$question" | cli >/dev/null # one right after the other
    finish "$PID"
    exits 0
    grep -q 'acquire: .* answers granted' "$T/waiter.err" || return 0
  done
  fail "it always asked again: $(<"$T/waiter.err")"
}
