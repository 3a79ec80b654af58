# Every kind of Redis beside the plain one of helpers.bash: TLS, Sentinel, Cluster, a quorum, and servers that only
# pretend to be one. Each sets RLOCK_REDIS.

HERE=$(dirname "${BASH_SOURCE[0]}")

cli_at() { # PORT COMMAND...
  local tls=()
  ((${#TLS_ONLY[@]} == 0)) || tls=(--tls --cacert "$T/ca.crt")
  REDISCLI_AUTH=${SERVER_PASSWORD-} "$REDIS_CLI" --no-auth-warning "${tls[@]}" -p "$@" 2>/dev/null
}

info_says() { cli_at "$1" INFO | grep -q "^$2"; } # PORT REGEX

# ---- renewals, as `hold job -v` reports them

renewed_more_than() { (($(grep -c 'renewed job' "$T/holder.err") > $1)); }

still_renewed() { # waits for two more renewals
  local count
  count=$(grep -c 'renewed job' "$T/holder.err") || true
  wait_until "$PATIENCE" renewed_more_than $((count + 1)) || fail "$(<"$T/holder.err")"
}

# ---- users

# become_least PORT...: from here on rlock is a user who has, on each of those servers, only the permissions that check
# names
become_least() {
  local port
  try check
  grep '^ACL SETUSER ' "$T/out" >"$T/acl"
  for port; do same "$(cli_at "$port" <"$T/acl")" OK; done
  (umask 77 && sed -n 's/.* on >\([^ ]*\) .*/\1/p' "$T/acl" >"$T/password")
  export RLOCK_USERNAME=rlock RLOCK_PASSWORD_FILE=$T/password
}

# live: the whole life of a lock, which is taken, waited for, shown, renewed, forced and replicated.
live() {
  hold job --renew-every 1s
  start waiter rlock run --key job -- rlock renew
  wait_for_text "waiting for job" "$T/waiter.err"
  try status
  exits 0
  matches "$OUT" $'\njob +x +.* 1 \\([^)]+\\) +- +- +[0-9]+$'
  try release job --force
  exits 0
  finish "$HOLDER"
  exits 76
  finish "$PID"
  exits 0
  try run --key job --replicas 1 -- true
  exits 0
  try check
  exits 0
}

# ---- TLS

# make_certificates: writes to $T ca.crt and, signed by it, NAME.crt with NAME.key for localhost, elsewhere, expired,
# client
make_certificates() {
  local name
  new_key ca
  openssl req -x509 -new -key "$T/ca.key" -subj "/CN=test CA" -days 2 -out "$T/ca.crt"
  sign localhost 'DNS:localhost,IP:127.0.0.1' -days 2
  sign elsewhere 'DNS:elsewhere.example' -days 2
  sign client 'DNS:client' -days 2
  # OpenSSL 3.0 knows only the first, 3.5 only the second.
  sign expired 'DNS:localhost,IP:127.0.0.1' -days -1 ||
    sign expired 'DNS:localhost,IP:127.0.0.1' -not_before 20200101000000Z -not_after 20200102000000Z
} 2>/dev/null

new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$T/$1.key"; }

sign() { # NAME ALTERNATIVE-NAMES LIFETIME...
  new_key "$1"
  openssl req -new -key "$T/$1.key" -subj "/CN=$1" -out "$T/$1.csr"
  openssl x509 -req -in "$T/$1.csr" -CA "$T/ca.crt" -CAkey "$T/ca.key" -CAcreateserial "${@:3}" -out "$T/$1.crt" \
    -extfile <(echo "subjectAltName=$2")
}

# start_tls_redis [CERTIFICATE [OPTION...]]: sets what start_redis sets, and TLS_PORT
start_tls_redis() {
  local name=${1:-localhost}
  [[ -e $T/ca.crt ]] || make_certificates
  start_redis --tls-cert-file "$T/$name.crt" --tls-key-file "$T/$name.key" --tls-ca-cert-file "$T/ca.crt" \
    --tls-auth-clients no "${@:2}"
  cli INFO server | grep -q redis_version || fail "no answer"
  wait_until "$PATIENCE" listen_with_tls
  RLOCK_REDIS=rediss://localhost:$TLS_PORT
}

listen_with_tls() {
  TLS_PORT=$((20000 + RANDOM % 12000))
  [[ $(cli CONFIG SET tls-port "$TLS_PORT") == OK ]]
}

# tls_only: servers, nodes and sentinels started from here on speak only TLS, also among themselves
tls_only() {
  [[ -e $T/ca.crt ]] || make_certificates
  TLS_ONLY=(--tls-cert-file "$T/localhost.crt" --tls-key-file "$T/localhost.key" --tls-ca-cert-file "$T/ca.crt"
    --tls-auth-clients no --tls-replication yes --tls-cluster yes)
}

# ---- Sentinel

# start_sentinel: starts a primary, a replica and three sentinels that know each other from the start; sets PRIMARY,
# REPLICA, SENTINELS (ports), PRIMARY_PID, REPLICA_PID and PRIMARY_SOCK
start_sentinel() {
  local n ids=()
  start_redis --repl-diskless-sync-delay 0 "$@"
  PRIMARY=$REDIS_PORT PRIMARY_PID=$REDIS_PID PRIMARY_SOCK=$REDIS_SOCK
  start_redis --replicaof 127.0.0.1 "$PRIMARY" "$@"
  REPLICA=$REDIS_PORT REPLICA_PID=$REDIS_PID
  wait_until "$PATIENCE" info_says "$REPLICA" master_link_status:up
  SENTINELS=() SENTINEL_PIDS=()
  for n in 1 2 3; do
    ids+=("$(printf '%040x' "$n")")
    start_one_sentinel "${ids[-1]}"
    SENTINELS+=("$REDIS_PORT") SENTINEL_PIDS+=("$REDIS_PID")
  done
  introduce_sentinels
  RLOCK_REDIS=redis${TLS_ONLY:+s}-sentinel://$(printf ',127.0.0.1:%s' "${SENTINELS[@]}" | cut -c 2-)/main
}

start_one_sentinel() { # ID
  local config=$T/sentinel.$1
  until try_sentinel "$1" "$config" $((20000 + RANDOM % 12000)); do :; done
  SERVERS+=("$REDIS_PID")
}

try_sentinel() { # ID CONFIG PORT
  REDIS_PORT=$3
  cat >"$2" <<END
bind 127.0.0.1
dir $T
sentinel myid $1
sentinel monitor main 127.0.0.1 $PRIMARY 2
sentinel down-after-milliseconds main 500
sentinel failover-timeout main 2000
${SERVER_PASSWORD:+sentinel auth-pass main $SERVER_PASSWORD}
${SENTINEL_PASSWORD:+requirepass $SENTINEL_PASSWORD}
END
  listening_at "$3"
  "$REDIS_SERVER" "$2" --sentinel "${LISTENING[@]}" >"$2.log" 2>&1 3>&- 4>&- &
  REDIS_PID=$!
  wait_until "$PATIENCE" monitors_or_gone "$2.log" || return
  ! gone "$REDIS_PID"
}

monitors_or_gone() { grep -q '+monitor' "$1" || gone "$REDIS_PID"; } # LOG

# Sentinels take two seconds to find each other; a forged greeting introduces them at once.
introduce_sentinels() {
  local n
  for n in 0 1 2; do
    cli_at "$PRIMARY" PUBLISH __sentinel__:hello \
      "127.0.0.1,${SENTINELS[n]},$(printf '%040x' $((n + 1))),0,main,127.0.0.1,$PRIMARY,0" >/dev/null
  done
  for n in "${SENTINELS[@]}"; do
    wait_until "$PATIENCE" sentinel_is_ready "$n"
  done
}

sentinel_is_ready() {
  local master
  master=$(SERVER_PASSWORD=${SENTINEL_PASSWORD-} cli_at "$1" INFO sentinel | grep ^master0)
  [[ $master == *slaves=1,sentinels=3* ]]
}

# ---- Cluster

# start_cluster [OPTION...]: starts three masters, NODES[0..2], with the replicas NODES[3..5] (ports); sets NODE_PIDS
start_cluster() {
  local n
  until start_nodes "$@"; do
    stop "${NODE_PIDS[@]}"
  done
  export RLOCK_REDIS=redis${TLS_ONLY:+s}-cluster://127.0.0.1:${NODES[0]}
  for n in "${NODES[@]}"; do
    wait_until "$PATIENCE" info_says_cluster "$n" cluster_state:ok
  done
  for n in "${NODES[@]:3}"; do
    wait_until "$PATIENCE" info_says "$n" master_link_status:up
  done
}

info_says_cluster() { cli_at "$1" CLUSTER INFO | grep -q "^$2"; } # PORT REGEX

# The nodes read from their files what they would otherwise learn by gossip.
start_nodes() {
  local first=$((20000 + RANDOM % 2600)) n dir
  NODES=() NODE_PIDS=()
  for n in {0..5}; do NODES+=($((first + n))); done
  for n in {0..5}; do
    dir=$(mktemp -d "$T/node.XXXXXX")
    cluster_file "$n" >"$dir/nodes.conf"
    REDIS_SOCK=$dir/sock
    try_port "${NODES[n]}" --cluster-enabled yes --cluster-node-timeout 1000 --cluster-replica-validity-factor 0 \
      --cluster-require-full-coverage no --repl-diskless-sync-delay 0 "$@" || return 1
    NODE_PIDS+=("$REDIS_PID") SERVERS+=("$REDIS_PID")
  done
}

node_id() { printf '%040x' $((1 + $1)); } # INDEX

cluster_file() { # INDEX: prints that node's file
  local n flags master slots=(0-5460 5461-10922 10923-16383)
  for n in {0..5}; do
    flags=master master=-
    ((n < 3)) || { flags=slave master=$(node_id $((n - 3))); }
    ((n != $1)) || flags=myself,$flags
    echo "$(node_id "$n") 127.0.0.1:${NODES[n]}@$((NODES[n] + 10000)) $flags $master 0 0 $((n % 3 + 1)) connected ${slots[n]-}"
  done
  echo "vars currentEpoch 6 lastVoteEpoch 0"
}

# The index, in NODES, of the master that has KEY.
node_of() {
  local slot
  slot=$(cli_at "${NODES[0]}" CLUSTER KEYSLOT "$1")
  echo $((slot / 5461))
}

# ---- quorum

# start_quorum N: starts N independent servers, old enough to vote with --max-lease 1s; sets QUORUM_PIDS, QUORUM_PORTS
start_quorum() {
  local n urls=()
  QUORUM_PIDS=() QUORUM_PORTS=()
  for ((n = 0; n < $1; ++n)); do
    start_redis
    QUORUM_PIDS+=("$REDIS_PID") QUORUM_PORTS+=("$REDIS_PORT")
    urls+=("$RLOCK_REDIS")
  done
  export RLOCK_REDIS="${urls[*]}"
  starts_to_vote 1
}

# starts_to_vote SECONDS: waits until all servers are old enough to vote with that --max-lease, and sets it
starts_to_vote() {
  local port
  for port in "${QUORUM_PORTS[@]}"; do wait_until "$PATIENCE" votes "$port" "$1"; done
  export RLOCK_MAX_LEASE=${1}s
}

votes() { (($(uptime_at "$1") > $2)); } # PORT SECONDS: with that --max-lease

uptime_at() { cli_at "$1" INFO server | sed -n 's/^uptime_in_seconds:\([0-9]*\).*/\1/p'; } # PORT

# ---- pretenders

# start_fake MODE: sets FAKE_PORT; see fake_server.py. What it was sent is in $T/fake.out.
start_fake() {
  rm -f "$T/fake.out"
  start fake python3 "$HERE/fake_server.py" "$1"
  wait_until "$PATIENCE" has_lines "$T/fake.out" 1
  FAKE_PORT=$(head -n 1 "$T/fake.out")
  export RLOCK_REDIS=redis://127.0.0.1:$FAKE_PORT
}
