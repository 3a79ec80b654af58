# redis-sentinel://: one primary, one replica, three sentinels.

load ../support/helpers
load ../support/servers
load ../support/supervision

setup() { hermetic; }

fence_of() { rlock status job --json | jq '.[0].holders[0].fence'; }

@test "whoever takes a sentinel for the server, or the server for a sentinel, is told what to write" {
  start_redis
  PRIMARY=$REDIS_PORT
  try status -r "redis-sentinel://127.0.0.1:$PRIMARY/main"
  exits 69
  contains "$ERR" 'it is not a Sentinel; write redis://HOST:PORT (from --redis)'
  start_one_sentinel "$(printf '%040x' 1)"
  try status -r "redis://127.0.0.1:$REDIS_PORT"
  exits 69
  contains "$ERR" 'is it a Sentinel? Then write redis-sentinel://HOST:PORT/MASTER-NAME (from --redis)'
}

@test "the master is found, even past sentinels that are dead, frozen, or name the wrong one" {
  start_sentinel
  local sentinels=$RLOCK_REDIS dead liar
  try run --key job -- echo ran
  exits 0
  same "$(cli_at "$PRIMARY" HGET '{rlock:job}:meta' state | cut -d ' ' -f 2)" 1
  RLOCK_REDIS=$sentinels/1 try run --key job -- true # the database is the master's: a sentinel has none
  exits 0
  same "$(cli_at "$PRIMARY" -n 1 HGET '{rlock:job}:meta' state | cut -d ' ' -f 2)" 1

  export RLOCK_REDIS=redis-sentinel://127.0.0.1:1,127.0.0.1:${SENTINELS[1]}/main
  try run --key job -- true
  exits 0
  start fake python3 "$HERE/fake_server.py" master "127.0.0.1:$REPLICA"
  wait_until "$PATIENCE" test -s "$T/fake.out"
  liar=$(head -n 1 "$T/fake.out")
  RLOCK_REDIS=redis-sentinel://127.0.0.1:$liar,127.0.0.1:${SENTINELS[1]}/main
  try run --key job -- true
  exits 0
  RLOCK_REDIS=redis-sentinel://127.0.0.1:$liar/main
  try run --key job -n --redis-timeout 300ms -- touch "$T/started"
  exits 69
  contains "$ERR" "is not the master; its role is slave"
  [[ ! -e $T/started ]]

  RLOCK_REDIS=$sentinels
  kill -STOP "${SENTINEL_PIDS[0]}"
  try run --key job --redis-timeout 3s -- true
  exits 0
  RLOCK_REDIS=${sentinels%/main}/other
  try run --key job --redis-timeout 1s -- true
  exits 69
  contains "$ERR" "knows no master named 'other'"
}

@test "through a failover the holder keeps its lock and fence, and the next fence is larger" {
  local fence
  start_sentinel
  hold job -v --ttl 60s --renew-every 500ms
  fence=$(fence_of)
  start waiter rlock run --key job -- sh -c 'echo $RLOCK_FENCE'
  wait_for_text "waiting for job" "$T/waiter.err"
  wait_until "$PATIENCE" replica_has_it
  kill -KILL "$PRIMARY_PID"
  wait_until "$PATIENCE" info_says "$REPLICA" role:master
  still_renewed
  same "$(fence_of)" "$fence"
  waiter_has_its_turn
  (($(<"$T/waiter.out") > fence))
}

@test "when the master is demoted while a lock is held, the new one is found" {
  start_sentinel
  REDIS_SOCK=$PRIMARY_SOCK hold job -v --ttl 60s --renew-every 300ms
  wait_until "$PATIENCE" replica_has_it
  same "$(cli_at "${SENTINELS[0]}" SENTINEL FAILOVER main)" OK
  wait_until "$PATIENCE" info_says "$REPLICA" role:master
  cli_at "$PRIMARY" REPLICAOF 127.0.0.1 "$REPLICA" # as the sentinels would in ten seconds; it still answers, READONLY
  still_renewed
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  exits 143
  same "$(cli_at "$REPLICA" EXISTS rlock:job)" 0
}

@test "after a failover on purpose, whose old master goes on for ten seconds, the lock is renewed at the new one" {
  start_sentinel
  REDIS_SOCK=$PRIMARY_SOCK hold job -v --ttl 6s --renew-every 300ms
  wait_until "$PATIENCE" replica_has_it
  same "$(cli_at "${SENTINELS[0]}" SENTINEL FAILOVER main)" OK
  wait_until "$PATIENCE" info_says "$REPLICA" role:master
  wait_until 4 is_renewed_there # without renewals the lock would be lost in 6 s
  info_says "$PRIMARY" role:master
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  exits 143
  same "$(cli_at "$REPLICA" EXISTS rlock:job)" 0
}

# The lease has become longer at the new master.
is_renewed_there() {
  local before
  before=$(cli_at "$REPLICA" PTTL rlock:job)
  sleep 0.1
  (($(cli_at "$REPLICA" PTTL rlock:job) > before))
}

replica_has_it() { [[ $(cli_at "$REPLICA" EXISTS rlock:job) == 1 ]]; }

@test "sentinels that die or freeze do not endanger a held lock" {
  start_sentinel
  REDIS_SOCK=$PRIMARY_SOCK hold job -v --ttl 6s --renew-every 300ms
  kill -KILL "${SENTINEL_PIDS[0]}"
  kill -STOP "${SENTINEL_PIDS[@]:1}"
  still_renewed
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  exits 143
  same "$(grep -c 'cannot' "$T/holder.err")" 0
  same "$(cli_at "$PRIMARY" EXISTS rlock:job)" 0
}

@test "sentinels without a password work for servers that have one" {
  SERVER_PASSWORD=secret
  start_sentinel --requirepass secret --masterauth secret
  local hosts=${RLOCK_REDIS#redis-sentinel://}
  export RLOCK_REDIS=redis-sentinel://:secret@$hosts
  try run --key job -- true
  exits 0
  RLOCK_REDIS=redis-sentinel://$hosts RLOCK_PASSWORD=secret try run --key job -- true
  exits 0
  RLOCK_REDIS=redis-sentinel://$hosts
  try run --key job -- true
  exits 77
}

@test "sentinels may have a password of their own" {
  SERVER_PASSWORD=secret SENTINEL_PASSWORD=other
  start_sentinel --requirepass secret --masterauth secret
  export RLOCK_PASSWORD=secret
  try run --key job -- true
  exits 77
  contains "$ERR" "sentinel 127.0.0.1:${SENTINELS[0]}: a password is needed"
  RLOCK_REDIS=redis-sentinel://:other@${RLOCK_REDIS#redis-sentinel://}
  try run --key job -- true
  exits 0
}

@test "a user with the permissions that check names can do everything" {
  start_sentinel
  try check
  exits 0
  contains "$OUT" "role         master"
  contains "$OUT" "replicas     1; "
  become_least "$PRIMARY" "$REPLICA"
  REDIS_SOCK=$PRIMARY_SOCK live
}

@test "--replicas: the lock is acquired once the replicas have it, else it is given back" {
  start_sentinel
  try run --key job --replicas 1 -- echo ran
  exits 0
  same "$OUT" ran
  try run --key job --replicas 2:50ms -E 9 -- touch "$T/started"
  exits 9
  contains "$ERR" "job not acquired: 1 of 2 replicas had it within 50ms"
  [[ ! -e $T/started ]]
  same "$(cli_at "$PRIMARY" EXISTS rlock:job)" 0
  try acquire job --replicas 2:50ms
  exits 75
  try run --redis redis://a --redis redis://b --key job --replicas 1 -- true
  exits 64
}

@test "--replicas: a lock that they have, but too late for its lease, is given back" {
  start_sentinel
  kill -STOP "$REPLICA_PID"
  start taker rlock acquire job --replicas 1:10s --redis-timeout 10s --ttl 1s --wait 10s
  REDIS_SOCK=$PRIMARY_SOCK wait_held job
  sleep 1.1 # longer than the lease
  kill -CONT "$REPLICA_PID"
  finish "$PID"
  exits 75
  contains "$(<"$T/taker.err")" 'job not acquired: the replicas had it too late to be used'
}

@test "--replicas: they have the time that they were given, since the lease is whole before they are asked" {
  start_sentinel
  kill -STOP "$REPLICA_PID"
  start taker rlock run --key job --replicas 1:20s --ttl 10m -- true
  REDIS_SOCK=$PRIMARY_SOCK wait_held job
  wait_until "$PATIENCE" lasts_for_minutes
  kill -CONT "$REPLICA_PID"
  finish "$PID"
  exits 0
}

lasts_for_minutes() { (($(cli_at "$PRIMARY" PTTL rlock:job) > 300000)); }

@test "a replica that is named directly is refused, and its locks are not taken for free" {
  start_redis --repl-diskless-sync-delay 0
  local primary=$REDIS_PORT
  start_redis --replicaof 127.0.0.1 "$primary"
  wait_until "$PATIENCE" info_says "$REDIS_PORT" master_link_status:up
  try run --key job --wait 300ms -- touch "$T/started"
  exits 69
  contains "$ERR" "this is a replica"
  [[ ! -e $T/started ]]
}

# hold_replicated OPTION...: a run of key job with --replicas, on a primary with one replica; sets HOLDER, REPLICA_PID
hold_replicated() {
  start_redis --repl-diskless-sync-delay 0
  local primary=$REDIS_PORT primary_sock=$REDIS_SOCK url=$RLOCK_REDIS
  start_redis --replicaof 127.0.0.1 "$primary"
  REPLICA_PID=$REDIS_PID
  wait_until "$PATIENCE" info_says "$REDIS_PORT" master_link_status:up
  RLOCK_REDIS=$url REDIS_SOCK=$primary_sock
  hold job -v --replicas 1:20s "$@"
  wait_for_text 'holding job' "$T/holder.err" # the replica has the lock
}

@test "--replicas: a renewal that no replica has does not count, and the command is stopped in time" {
  hold_replicated --ttl 5s
  still_renewed
  freeze "$REPLICA_PID"
  finish "$HOLDER"
  exits 76
  # On a busy machine the answer that none had it may also be late.
  matches "$(<"$T/holder.err")" "cannot renew job: (0 of 1 replicas had the renewal within |.*no answer in time)"
}

@test "--replicas: a replica that is back within the lease does no harm" {
  hold_replicated --ttl 10m --renew-every 200ms
  freeze "$REPLICA_PID"
  wait_for_text "cannot renew job: " "$T/holder.err" || fail "$(<"$T/holder.err")"
  contains "$(<"$T/holder.err")" "0 of 1 replicas had the renewal within " # the answer came in time
  kill -CONT "$REPLICA_PID"
  wait_for_text "job is renewed again after " "$T/holder.err"
  matches "$(<"$T/holder.err")" 'job is renewed again after ([0-9]+m)?[0-9.]+s' # all of the second that it waited, too
  still_renewed
}

@test "--replicas: the renewals of acquire --hold-pid are confirmed too" {
  hold_replicated
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  start script sleep 600
  try acquire other --ttl 5s --replicas 1 --hold-pid "$PID"
  exits 0
  freeze "$REPLICA_PID"
  finish "$PID"
  exits 143
}

# ---- a partition between two network namespaces, which end with the processes in them

side() { nsenter --net="/proc/${SIDES[$1]}/ns/net" "${@:2}"; } # 0|1 COMMAND...

# start_at SIDE NAME COMMAND...
start_at() { start "$2" nsenter --net="/proc/${SIDES[$1]}/ns/net" "${@:3}"; }

# make_sides: two network namespaces that a cable joins, 192.0.2.1 and 192.0.2.2; SIDES, the pids that keep them
make_sides() {
  local n
  SIDES=()
  for n in 0 1; do
    start "side$n" unshare --net sleep 600
    SIDES+=("$PID")
  done
  for n in 0 1; do
    wait_until "$PATIENCE" is_apart "${SIDES[n]}"
    side "$n" ip link set lo up
  done
  side 0 ip link add cable type veth peer name cable netns "${SIDES[1]}"
  for n in 0 1; do
    side "$n" ip address add "192.0.2.$((n + 1))/24" dev cable
    side "$n" ip link set cable up
  done
}

is_apart() { [[ $(readlink "/proc/$1/ns/net") != "$(readlink /proc/self/ns/net)" ]]; } # PID

start_redis_at() { # SIDE PORT OPTION...
  local dir
  dir=$(mktemp -d "$T/redis.XXXXXX")
  start_at "$1" "redis$2" "$REDIS_SERVER" --port "$2" --protected-mode no --dir "$dir" --save '' "${@:3}"
  wait_until "$PATIENCE" grep -qs 'eady to accept connections' "$T/redis$2.out"
}

start_sentinel_at() { # SIDE PORT
  cat >"$T/sentinel.$2" <<END
port $2
protected-mode no
dir $T
sentinel announce-ip 192.0.2.$(($1 + 1))
sentinel monitor main 192.0.2.1 6379 2
sentinel down-after-milliseconds main 700
sentinel failover-timeout main 2000
END
  start_at "$1" "sentinel$2" "$REDIS_SERVER" "$T/sentinel.$2" --sentinel
}

is_in_step() { side 1 "$REDIS_CLI" -p 6380 INFO replication | grep -q '^master_link_status:up'; }

sees_all() { [[ $(side "$1" "$REDIS_CLI" -p "$2" INFO sentinel | grep ^master0) == *slaves=1,sentinels=3* ]]; } # SIDE PORT

is_there_or_gone() { [[ -e $1 ]] || gone "$2"; } # FILE PID

@test "a partition with the holder beside the old master: with --replicas its command is dead before another's begins" {
  unshare --net true 2>/dev/null || skip "no network namespaces may be made here"
  make_sides
  start_redis_at 0 6379 --repl-diskless-sync-delay 0
  start_redis_at 1 6380 --replicaof 192.0.2.1 6379
  wait_until "$PATIENCE" is_in_step
  start_sentinel_at 0 26379
  start_sentinel_at 1 26380
  start_sentinel_at 1 26381
  wait_until "$PATIENCE" sees_all 0 26379
  wait_until "$PATIENCE" sees_all 1 26380
  wait_until "$PATIENCE" sees_all 1 26381
  export RLOCK_REDIS=redis-sentinel://192.0.2.1:26379,192.0.2.2:26380,192.0.2.2:26381/main
  start_at 0 old rlock run --key job --ttl 3s --replicas 1 -- \
    sh -c 'while cp /proc/uptime "$0.new" && mv "$0.new" "$0"; do sleep 0.02; done' "$T/alive"
  local old=$PID alive began
  wait_until "$PATIENCE" is_there_or_gone "$T/alive" "$old"
  [[ -e $T/alive ]] || fail "$(<"$T/old.err")"
  side 0 ip link set cable down
  start_at 1 new rlock run --key job --ttl 3s --wait 30s -- sh -c 'cat /proc/uptime "$0"' "$T/alive"
  finish "$PID"
  exits 0
  { read -r began _ && read -r alive _; } <"$T/new.out"
  finish "$old"
  exits 76
  echo "# the old one was last alive $((10#${began/./} - 10#${alive/./}))0 ms before the new one began" >&3
  same "$(cut -d ' ' -f 1 "$T/alive")" "$alive"
  ((10#${alive/./} < 10#${began/./}))
}

@test "when a master answers READONLY the new one is looked for, past a sentinel that still names the old" {
  start_sentinel
  start fake python3 "$HERE/fake_server.py" master "127.0.0.1:$PRIMARY"
  wait_until "$PATIENCE" has_lines "$T/fake.out" 1
  RLOCK_REDIS=redis-sentinel://127.0.0.1:$(head -n 1 "$T/fake.out"),127.0.0.1:${SENTINELS[1]}/main
  REDIS_SOCK=$PRIMARY_SOCK hold job -v --ttl 60s --renew-every 300ms
  wait_until "$PATIENCE" replica_has_it
  same "$(cli_at "${SENTINELS[0]}" SENTINEL FAILOVER main)" OK
  wait_until "$PATIENCE" info_says "$REPLICA" role:master
  cli_at "$PRIMARY" REPLICAOF 127.0.0.1 "$REPLICA"
  still_renewed
}
