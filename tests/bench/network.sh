#!/usr/bin/env bash
# What a lock costs by the way to Redis: a Unix socket, the loopback, and networks that deliver after a while.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if ((EUID != 0)) || [[ ! -c /dev/net/tun ]] || ! unshare --net true 2>/dev/null; then
  echo $'\nThe way to Redis is not measured: that takes root, network namespaces and /dev/net/tun.'
  exit
fi
[[ -n ${IS_APART-} ]] || IS_APART=yes exec unshare --net "$0" # a namespace vanishes with all that is made in it

nearby() { nsenter --net --target "$CLIENTS" "$@"; } # where the clients are; Redis is where we are

has_wire() { ip link show far && nearby ip link show near; } &>/dev/null

# compare WAY LIMIT-ARGUMENT URL [COMMAND...]: COMMAND runs the race, after a warm-up
compare() {
  local race=("${@:4}" "$T/bin/race") entries
  entries=(@ limit "$T/bin/limit" "$2" way "$TRUE" @ rlock "$T/bin/rlock" run --key way --redis "$3" -- "$TRUE")
  "${race[@]}" 3 "${entries[@]}" >/dev/null
  "${race[@]}" "${ROUNDS:-100}" "${entries[@]}" >"$T/times"
  # shellcheck disable=SC2046 # one word each
  row "$1" $(awk '{printf "%.2f ", $2 / 1000} END {print $4, $5}' "$T/times")
}

build limit race wire
ip link set lo up
start_redis --bind 0.0.0.0 --protected-mode no
limit "$REDIS_PORT"
unshare --net sleep infinity &
CLIENTS=$!
SERVERS+=("$CLIENTS")

heading 'The way to Redis: `true` under the lock' way 'limit, ms' 'rlock, ms' 'x limit' 'more than limit, us'
compare 'Unix socket' "$REDIS_SOCK" "unix://$REDIS_SOCK"
compare loopback "$REDIS_PORT" "$RLOCK_REDIS"
for delay in 0.1 0.5 2; do
  nsenter --net --target "$CLIENTS" "$T/bin/wire" "$(calc %d "$delay * 1000")" $$ &
  wire=$!
  wait_until "$PATIENCE" has_wire
  ip address add 10.0.0.2 peer 10.0.0.1 dev far
  ip link set far up
  nearby ip address add 10.0.0.1 peer 10.0.0.2 dev near
  nearby ip link set near up
  compare "network, $delay ms each way" "10.0.0.2:$REDIS_PORT" "redis://10.0.0.2:$REDIS_PORT" nearby
  kill "$wire"
  wait "$wire" || true # it was killed
done
