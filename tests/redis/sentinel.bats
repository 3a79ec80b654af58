# redis-sentinel://: one primary, one replica, three sentinels.

load ../support/helpers
load ../support/servers

setup() { hermetic; }

fence_of() { rlock status job --json | jq '.[0].holders[0].fence'; }

@test "the master is found, also past sentinels that are dead, frozen, or name the wrong one" {
  start_sentinel
  local sentinels=$RLOCK_REDIS dead liar
  try run --key job -- echo ran
  exits 0
  same "$(cli_at "$PRIMARY" HGET '{rlock:job}:meta' acquired)" 1

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
  try run --key job -n --timeout 300ms -- touch "$T/started"
  exits 69
  contains "$ERR" "is not the master but slave"
  [[ ! -e $T/started ]]

  RLOCK_REDIS=$sentinels
  kill -STOP "${SENTINEL_PIDS[0]}"
  try run --key job --timeout 3s -- true
  exits 0
  RLOCK_REDIS=${sentinels%/main}/other
  try run --key job --timeout 1s -- true
  exits 69
  contains "$ERR" "knows no master named 'other'"
}

@test "a failover while the lock is held: undisturbed, the fence kept, a larger one afterwards" {
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

@test "a master that is demoted while the lock is held: the new one is found" {
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

@test "a failover on purpose, whose old master goes on for ten seconds: the lock is renewed at the new one" {
  start_sentinel
  REDIS_SOCK=$PRIMARY_SOCK hold job -v --ttl 6s --renew-every 300ms
  wait_until "$PATIENCE" replica_has_it
  same "$(cli_at "${SENTINELS[0]}" SENTINEL FAILOVER main)" OK
  wait_until "$PATIENCE" info_says "$REPLICA" role:master
  wait_until 4 is_renewed_there # without renewals it would be lost in six
  info_says "$PRIMARY" role:master
  kill -TERM "$HOLDER"
  finish "$HOLDER"
  exits 143
  same "$(cli_at "$REPLICA" EXISTS rlock:job)" 0
}

# The lease at the new master has become longer.
is_renewed_there() {
  local before
  before=$(cli_at "$REPLICA" PTTL rlock:job)
  sleep 0.1
  (($(cli_at "$REPLICA" PTTL rlock:job) > before))
}

replica_has_it() { [[ $(cli_at "$REPLICA" EXISTS rlock:job) == 1 ]]; }

@test "sentinels that die or freeze do not cost a lock that is held" {
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

@test "sentinels without a password, whose servers have one" {
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

@test "sentinels with a password of their own" {
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

@test "a user with the rights that check names can do everything" {
  start_sentinel
  try check
  exits 0
  contains "$OUT" "role         master"
  contains "$OUT" "replicas     1; "
  become_least "$PRIMARY" "$REPLICA"
  REDIS_SOCK=$PRIMARY_SOCK live
}

@test "--replicas: acquired when they have it, else released and not acquired" {
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

@test "a replica, named directly, refuses to write and is not believed to be free" {
  start_redis --repl-diskless-sync-delay 0
  local primary=$REDIS_PORT
  start_redis --replicaof 127.0.0.1 "$primary"
  wait_until "$PATIENCE" info_says "$REDIS_PORT" master_link_status:up
  try run --key job --wait 300ms -- touch "$T/started"
  exits 69
  contains "$ERR" READONLY
  [[ ! -e $T/started ]]
}
