# redis-cluster://: three masters with a replica each.

load ../support/helpers
load ../support/servers

setup() { hermetic; }

at() { cli_at "${NODES[$1]}" "${@:2}"; } # INDEX COMMAND...

@test "locks of every slot work through any node; status asks all masters; a dead node in the URL does no harm" {
  local n key
  start_cluster
  for n in {1..9}; do
    try run --key "job$n" -- true
    exits 0
  done
  try run --key 'a{tag}b' -- rlock status 'a{tag}b' '{tag}'
  exits 1
  matches "$OUT" 'a\{tag\}b +x'
  for key in one two three four five six; do try acquire "$key"; done
  try status --json
  exits 0
  same "$(jq -c '[.[] | select(.state == "held") | .key]' <<<"$OUT")" '["five","four","one","six","three","two"]'
  try status one two three nobody
  exits 1
  same "$(grep -c ' x ' <<<"$OUT")" 3
  RLOCK_REDIS=redis-cluster://127.0.0.1:1,127.0.0.1:${NODES[4]}
  try run --key job1 -- rlock renew
  exits 0
  kill -STOP "${NODE_PIDS[5]}"
  RLOCK_REDIS=redis-cluster://127.0.0.1:${NODES[5]},127.0.0.1:${NODES[1]} try run --key job1 -- true
  exits 0
}

@test "when the master of a held lock fails, the holder keeps its lock and fence, and the next fence is larger" {
  local index fence
  start_cluster
  index=$(node_of rlock:job)
  # The URL names only the master that will fail.
  RLOCK_REDIS=redis-cluster://127.0.0.1:${NODES[index]}
  start holder rlock run -v --key job --ttl 60s --renew-every 500ms -- sh -c 'echo $RLOCK_FENCE; exec sleep 600'
  HOLDER=$PID
  wait_until "$PATIENCE" test -s "$T/holder.out"
  fence=$(<"$T/holder.out")
  start waiter rlock run --key job -- sh -c 'echo $RLOCK_FENCE'
  wait_for_text "waiting for job" "$T/waiter.err"
  wait_until "$PATIENCE" info_says "${NODES[index + 3]}" db0:keys= # the replica has it
  wait_for_text 'renewed job' "$T/holder.err" # the lease is whole from now on, and longer than any failover
  kill -KILL "${NODE_PIDS[index]}"
  wait_until "$PATIENCE" info_says "${NODES[index + 3]}" role:master
  still_renewed
  waiter_has_its_turn
  (($(<"$T/waiter.out") > fence))
}

@test "a slot can move while its lock is held, waited for and released" {
  local slot from to ids
  start_cluster
  from=$(node_of rlock:job)
  to=$(((from + 1) % 3))
  slot=$(at 0 CLUSTER KEYSLOT rlock:job)
  hold job -v --ttl 10s --renew-every 200ms --replicas 1
  start waiter rlock run --key job -- echo next
  wait_for_text "waiting for job" "$T/waiter.err"
  at "$to" CLUSTER SETSLOT "$slot" IMPORTING "$(node_id "$from")"
  at "$from" CLUSTER SETSLOT "$slot" MIGRATING "$(node_id "$to")"
  move_key rlock:job # the other keys stay, so acquire and release now get TRYAGAIN, a renewal gets ASK
  still_renewed
  try status job
  exits 69
  contains "$ERR" TRYAGAIN
  for key in queue waiters meta; do move_key "{rlock:job}:$key"; done
  for n in "$to" "$from" 0 1 2; do at "$n" CLUSTER SETSLOT "$slot" NODE "$(node_id "$to")"; done
  waiter_has_its_turn
  same "$(<"$T/waiter.out")" next
  same "$(at "$to" HGET '{rlock:job}:meta' state | cut -d ' ' -f 3)" 1
}

exists() {
  local n
  for n in 0 1 2; do [[ $(at "$n" EXISTS "$1") != 1 ]] || return 0; done
  return 1
}

move_key() { at "$from" MIGRATE 127.0.0.1 "${NODES[to]}" "$1" 0 5000; }

@test "a cluster that is down is waited for within the time allowed, and named" {
  start_cluster --cluster-require-full-coverage yes
  kill -KILL "${NODE_PIDS[1]}" "${NODE_PIDS[4]}"
  wait_until "$PATIENCE" info_says_cluster "${NODES[0]}" cluster_state:fail
  try run --key job --wait 300ms -- touch "$T/started"
  exits 69
  contains "$ERR" CLUSTERDOWN
  [[ ! -e $T/started ]]
}

@test "status reports a failed master that was not replaced, and still shows the locks of the others" {
  local here there
  start_cluster
  here=$(key_at 0) there=$(key_at 1)
  kill -KILL "${NODE_PIDS[1]}" "${NODE_PIDS[4]}"
  wait_until "$PATIENCE" has_failed 1
  try status
  exits 69
  contains "$ERR" "127.0.0.1:${NODES[1]}"
  try status "$there"
  exits 69
  try status "$here"
  exits 1
  try check
  exits 69
  contains "$OUT" "FAIL  reachable    $RLOCK_REDIS (127.0.0.1:${NODES[1]}): "
}

key_at() { # INDEX: the first of some that is kept there
  local key
  for key in {a..z}; do
    if (($(node_of "rlock:$key") == $1)); then
      echo "$key"
      return
    fi
  done
}

# has_failed INDEX: the other nodes agree that it has
has_failed() { at 0 CLUSTER NODES | grep -q ":${NODES[$1]}@.* master,fail "; }

@test "check looks at all masters, and reports only once what is true of all" {
  local name
  start_cluster
  try check
  exits 0
  same "$(grep -c "^ok    reachable .* in [0-9.]* ms" <<<"$OUT")" 3
  for name in version role eviction persistence replicas permissions; do
    same "$(grep -c "^[a-z]*  *$name " <<<"$OUT")" 1
  done
  contains "$OUT" "role         master"
  contains "$OUT" "replicas     1; "
  at 1 CONFIG SET maxmemory-policy allkeys-lru
  at 1 CONFIG SET maxmemory 100mb
  try check
  exits 1
  contains "$OUT" "FAIL  eviction     127.0.0.1:${NODES[1]}: allkeys-lru can evict a lock"
  matches "$OUT" "ok    eviction     127.0.0.1:(${NODES[0]}, 127.0.0.1:${NODES[2]}|${NODES[2]}, 127.0.0.1:${NODES[0]}): noeviction"
}

@test "redis:// to a node of a Cluster fails with the advice to write redis-cluster://" {
  start_fake moved
  try run --key job -- true
  exits 69
  contains "$ERR" 'this is a node of a Redis Cluster: write redis-cluster://'
  ((TOOK < 5000)) || fail "took $TOOK ms"
}

@test "a user with the permissions that check names, on every node, can do everything" {
  start_cluster
  become_least "${NODES[@]}"
  live
}

@test "a database that the cluster does not have is refused in the cluster's words, one that it has is used" {
  start_cluster
  RLOCK_REDIS=redis-cluster://127.0.0.1:${NODES[0]}/1 try run --key job -- true
  exits 69
  contains "$ERR" 'SELECT refused'
  ("$REDIS_SERVER" --version | grep -qE '^Valkey .*v=(9|[1-9][0-9])\.') || return 0 # others have one database
  start_cluster --cluster-databases 2
  RLOCK_REDIS=redis-cluster://127.0.0.1:${NODES[0]}/1 try run --key job -- true
  exits 0
}

@test "a node that names more nodes than any cluster has keeps nobody from the clock" {
  start_fake sprawl
  RLOCK_REDIS=redis-cluster://127.0.0.1:$FAKE_PORT try run --key job -n --redis-timeout 1s -- true
  exits 69
  ((TOOK < 8000)) || fail "took $TOOK ms"
}

@test "a node that redirects from itself to itself is not followed for ever" {
  start_fake moved
  RLOCK_REDIS=redis-cluster://127.0.0.1:$FAKE_PORT try run --key job -n --redis-timeout 1s -- touch "$T/started"
  exits 69
  contains "$ERR" "MOVED 1234"
  [[ ! -e $T/started ]]
  (($(wc -l <"$T/fake.out") < 200)) || fail "asked $(wc -l <"$T/fake.out") times"
}
